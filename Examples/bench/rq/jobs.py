"""A job that appends its number to a file."""
import os


def add(number):
    with open(os.environ["OUTPUT"], "a") as file:
        file.write(f"{number}\n")
