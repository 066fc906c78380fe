internal import NotesContract
internal import Wire

/// Paths, parameters and the schema of attachments.
extension OpenAPIDocument {
    var attachmentsPath: JSONValue {
        path(
            "Attachments", parameters: ["Name"],
            get: operation(
                "listAttachments", "The attachments of a note",
                reading([200: .list("Attachment")].merging(notFoundErrors) { $1 })))
    }

    var attachmentPath: JSONValue {
        let conditions = ["IfNoneMatch", "IfMatch"]
        let found = notFoundErrors.merging([304: .none, 412: .of("Failure")]) { $1 }
        let get = operation(
            "getAttachment", "The bytes of a complete attachment, or a range of them",
            reading(found.merging([200: .bytes, 206: .bytes, 409: .of("Failure"), 416: .of("Failure")]) { $1 }),
            parameters: conditions + ["Range", "IfRange"])
        let upload = notFoundErrors.merging([409: .of("Failure")]) { $1 }
        var item =
            path(
                "Attachment", parameters: ["Name", "AttachmentName"], get: get,
                [
                    "put": operation(
                        "putAttachment", "Creates an attachment, complete or with its first bytes",
                        writing(
                            upload.merging([200: .of("Attachment"), 201: .of("Attachment")]) { $1 }, hasBody: true),
                        parameters: ["UploadComplete", "UploadLength", "Digest"],
                        body: body(NotesService.attachmentType),
                        links: [
                            "get": link("getAttachment"), "head": link("headAttachment"),
                            "patch": link("appendToAttachment"), "delete": link("deleteAttachment"),
                        ]),
                    "patch": operation(
                        "appendToAttachment", "Appends bytes to an incomplete upload",
                        writing(upload.merging([204: .none]) { $1 }, hasBody: true),
                        parameters: ["UploadComplete", "UploadOffset", "UploadLength", "UploadDigest"],
                        body: body(AttachmentHTTP.partialUploadType)),
                    "delete": operation(
                        "deleteAttachment", "Deletes an attachment or ends its upload",
                        writing(notFoundErrors.merging([204: .none]) { $1 })),
                ]
            ).object ?? [:]
        // HEAD also describes an incomplete upload (204), and has no ranges.
        item["head"] = operation(
            "headAttachment", "The size and digest of an attachment, or the offset of its upload",
            reading(found.merging([200: .none, 204: .none]) { $1 }).mapValues { _ in .none }, parameters: conditions)
        return .object(item)
    }

    /// Returns the link from a created attachment to another of its operations.
    private func link(_ operation: String) -> JSONValue {
        [
            "operationId": .text(operation),
            "parameters": ["uuid": "$request.path.uuid", "name": "$response.body#/name"],
        ]
    }

    private func body(_ type: String) -> JSONValue { ["required": false, "content": .object([type: [:]])] }

    var attachmentParameters: Members {
        func header(_ name: String, _ schema: JSONValue, isRequired: Bool = false, _ description: String) -> JSONValue {
            [
                "name": .text(name), "in": "header", "required": .bool(isRequired), "schema": schema,
                "description": .text(description),
            ]
        }
        let text: JSONValue = ["type": "string"]
        let count: JSONValue = ["type": "integer", "minimum": 0]
        let size: JSONValue = [
            "type": "integer", "minimum": 0, "maximum": .integer(Int64(NotesService.Limits.attachmentBytesMax)),
        ]
        let digest: JSONValue = ["type": "string", "pattern": "^sha-256=:[A-Za-z0-9+/]{43}=:$"]
        return [
            "AttachmentName": [
                "name": "name", "in": "path", "required": true,
                "schema": ["type": "string", "minLength": 1, "maxLength": .integer(Int64(AttachmentName.bytesMax))],
                "description": "The attachment: 1 to 255 bytes without '/' and NUL.",
            ],
            "Range": header("Range", text, "A range of bytes."),
            "IfRange": header("If-Range", text, "The entity tag for which the range is meant."),
            "UploadComplete": header(
                AttachmentHTTP.uploadCompleteName, ["enum": ["?0", "?1"]], isRequired: true,
                "Whether the body has the last byte."),
            "UploadOffset": header(
                AttachmentHTTP.uploadOffsetName, count, isRequired: true, "The position of the body's first byte."),
            "UploadLength": header(
                AttachmentHTTP.uploadLengthName, size,
                "The size of the attachment in bytes; required if the upload has several requests."),
            "Digest": header(
                AttachmentHTTP.digestName, digest, isRequired: true, "The SHA-256 digest of the attachment (RFC 9530)."),
            "UploadDigest": header(
                AttachmentHTTP.digestName, digest, "The digest of the upload; another one is a conflict."),
        ]
    }

    var attachmentSchema: JSONValue {
        [
            "type": "object", "required": ["name", "size", "digest", "complete"], "additionalProperties": false,
            "properties": [
                "name": ["type": "string"], "size": ["type": "integer", "minimum": 0], "digest": ["type": "string"],
                "complete": ["type": "boolean"],
            ],
        ]
    }
}
