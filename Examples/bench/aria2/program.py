"""aria2c, a download with five connections, continued after an interruption."""
import downloads

DEBIAN = ["aria2", "nginx-light"]
VERSION = ["aria2c", "--version"]
CONDITIONS = downloads.CONDITIONS


def run(bench, condition):
    words = ["aria2c", "--no-conf", "-q", "--allow-overwrite=false", "-x", "4", "-s", "4", "-k", "1M", "--retry-wait=1", "-m", "4", "-c"]
    return downloads.download(bench, condition, words, words, promised=set())
