package lsp

// watched is the number of the process whose end a server is to watch for: none,
// for the system does, and a confined server cannot see us.
func watched() any { return nil }
