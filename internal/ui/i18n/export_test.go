package i18n

// Sure reports whether sentences made with a format are known by their shape.
func Sure(format string) bool {
	_, ok := parseShape(format)
	return ok
}
