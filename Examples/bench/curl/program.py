"""curl --retry, and curl -C - after an interruption."""
import downloads

DEBIAN = ["curl", "nginx-light"]
VERSION = ["curl", "--version"]
CONDITIONS = downloads.CONDITIONS


def run(bench, condition):
    words = ["curl", "-sS", "-f", "-O", "--retry", "3", "--retry-delay", "1", "-m", "100"]
    return downloads.download(bench, condition, words, [*words, "-C", "-"], promised={"false success"})
