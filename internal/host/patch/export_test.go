package patch

// Parse is ParseFor for a patch that names its files.
func Parse(text string) (Patch, error) { return ParseFor("", text) }
