"""The certificates that a test and its processes trust while the TLS of their connections is intercepted."""
import os
import shutil
import ssl
import tempfile

#: The variables whose file replaces the certificates of a program.
_REPLACING = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
    "PERL_LWP_SSL_CA_FILE", "PIP_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")
#: The variable whose file adds certificates to those of a program.
_ADDING = "NODE_EXTRA_CA_CERTS"
#: The files of the system's certificates: Debian, Fedora, openSUSE, Alpine and macOS.
_SYSTEM_FILES = (
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem")


def _certificates(path):
    """Returns the certificates of a file in PEM form; an empty text if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except (OSError, TypeError):
        return ""
    return text if not text or text.endswith("\n") else text + "\n"


class Trust:
    """A folder with the certificates of the system, or of the variables that are set, and of an authority."""

    def __init__(self, authority):
        self.authority = authority
        self._folder = tempfile.mkdtemp(prefix="slowlane-trust-")
        files = (ssl.get_default_verify_paths().cafile, *_SYSTEM_FILES)
        system = next((text for text in map(_certificates, files) if text), "")
        #: The path of the system's certificates and that of the authority.
        self.bundle = self._write("bundle.pem", system)
        #: The variables by which programs find the certificates.
        self.variables = {_ADDING: self._write("authority.pem", _certificates(os.environ.get(_ADDING)))}
        for name in _REPLACING:
            given = _certificates(os.environ.get(name))
            self.variables[name] = self._write(name + ".pem", given) if given else self.bundle

    def _write(self, name, others):
        path = os.path.join(self._folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(others + self.authority)
        return path

    def remove(self):
        shutil.rmtree(self._folder, ignore_errors=True)
