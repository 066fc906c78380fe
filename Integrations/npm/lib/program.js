'use strict';
// The program `slowlane`: where it is.

const fs = require('node:fs');
const path = require('node:path');

/** A call that the server refused, or a server that could not be started. */
class NetworkError extends Error {
  constructor(message, status) {
    super(message);
    this.name = 'NetworkError';
    /** The HTTP status of a refused call; otherwise undefined. */
    this.status = status;
  }
}

/** The program that a released package contains. */
const carried = path.join(__dirname, '..', 'bin', 'slowlane');

function isProgram(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function onPath(name) {
  const folders = (process.env.PATH || '').split(path.delimiter).filter(Boolean);
  return folders.map((folder) => path.join(folder, name)).find(isProgram);
}

/**
 * Returns the path of the program: `configured` (a path, or a name on PATH), else the environment variable SLOWLANE_PROGRAM, else the
 * program of this package, else `slowlane` on PATH. Throws a NetworkError if there is none.
 */
function findProgram(configured) {
  const given = configured || process.env.SLOWLANE_PROGRAM;
  if (!given && isProgram(carried)) return carried;
  const name = given || 'slowlane';
  const file = name.includes('/') ? path.resolve(name) : onPath(name);
  if (file && isProgram(file)) return file;
  const source = configured ? " (option 'program')" : ' (SLOWLANE_PROGRAM)';
  throw new NetworkError(
    `cannot find the program '${name}'${given ? source : ' on PATH'}: this package contains none for ${process.platform} ${process.arch}; ` +
      "build it with 'swift build -c release --product slowlane', and set SLOWLANE_PROGRAM to its path");
}

module.exports = { NetworkError, findProgram };
