"""wget -c, a download that is continued after an interruption."""
import downloads

DEBIAN = ["wget", "nginx-light"]
VERSION = ["wget", "--version"]
CONDITIONS = downloads.CONDITIONS


def run(bench, condition):
    words = ["wget", "-q", "-c", "-t", "4", "--waitretry=1", "--timeout=30"]
    # The manual warns of a file that has changed, for --continue (https://www.gnu.org/software/wget/manual/html_node/Download-Options.html).
    return downloads.download(bench, condition, words, words, promised={"false success"})
