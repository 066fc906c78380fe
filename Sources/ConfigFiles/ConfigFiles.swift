//  Files: what people write, read with its place.
//
//  Owns: YAML with positions, the profile files (built in and given), quantities with units, the nearest name to
//  a misspelt one.
//
//  Does not own: what the values mean (LinkModel). A file is valid as a whole or refused as a whole, with every
//  problem found and where it stands.
