# A formula of Homebrew for Linux and macOS that builds from source. It has not been run: fill in the address and the digest of a
# release, then 'brew install --build-from-source ./slowlane.rb' and 'brew test slowlane'.
class Slowlane < Formula
  desc "Network-condition simulator and chaos proxy"
  homepage "https://example.com/slowlane"
  url "https://example.com/slowlane/archive/v0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on xcode: ["26.0", :build]

  uses_from_macos "swift" => :build, since: :sequoia
  uses_from_macos "sqlite"

  def install
    # Swift has no stable ABI on Linux.
    static = OS.linux? ? ["--static-swift-stdlib"] : []
    system "swift", "build", "--disable-sandbox", "--configuration", "release", "--product", "slowlane", *static
    bin.install ".build/release/slowlane"
    generate_completions_from_executable(bin/"slowlane", "--generate-completion-script")
  end

  test do
    assert_match "slowlane", shell_output("#{bin}/slowlane --help")
    # A scenario in virtual time.
    assert_match "pass", shell_output("#{bin}/slowlane run edit-conflict-after-subway --quiet")
  end
end
