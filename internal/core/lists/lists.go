// Package lists parses lists that are stored as data beside the code.
//
// A list has one entry per line. A line in brackets begins a section, # begins a comment, and the first
// comment names the source and the date.
package lists

import (
	"iter"
	"strings"
)

// Entries yields each entry of a list with the name of its section.
func Entries(text string) iter.Seq2[string, string] {
	return func(yield func(section, entry string) bool) {
		section := ""
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			if name, ok := strings.CutPrefix(line, "["); ok && strings.HasSuffix(name, "]") {
				section = strings.TrimSuffix(name, "]")
				continue
			}
			if !yield(section, line) {
				return
			}
		}
	}
}

// Sections returns the entries of a list by section.
func Sections(text string) map[string][]string {
	all := make(map[string][]string)
	for section, entry := range Entries(text) {
		all[section] = append(all[section], entry)
	}
	return all
}
