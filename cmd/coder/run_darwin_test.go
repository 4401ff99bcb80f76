package main

// fionread asks how much can be read; the library does not name it here.
const fionread = 0x4004667f
