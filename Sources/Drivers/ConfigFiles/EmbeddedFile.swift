internal import CResources

/// A file of the repository that the program contains. `Sources/C/CResources/resources.c` lists them.
package struct EmbeddedFile: Sendable {
    /// The path in the repository.
    let path: String
    /// The text.
    let text: String

    /// The name without folder and extension.
    var name: String { TextFile.stem(path) }

    /// Returns a file of a page, such as `dashboard/app.js`; `nil` if there is none with this name.
    package static func page(_ name: String) -> String? {
        files.first { $0.path == "Sources/C/CResources/\(name)" }?.text
    }

    /// Returns the files of a folder, in the order of the list.
    static func all(in folder: String) -> [EmbeddedFile] { files.filter { $0.path.hasPrefix(folder + "/") } }

    private static let files: [EmbeddedFile] = {
        var files: [EmbeddedFile] = []
        while let file = cresources_file_at(files.count)?.pointee, let path = file.path, let text = file.text {
            files.append(EmbeddedFile(path: String(cString: path), text: String(cString: text)))
        }
        return files
    }()
}
