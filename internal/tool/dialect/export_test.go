package dialect

import (
	"maps"
	"slices"
)

// Tools lists every name the table knows a tool by.
func Tools() []string { return slices.Sorted(maps.Keys(loadTable().rows)) }
