package program

import (
	"iter"
	"slices"
	"strings"
)

// ParseSettings yields the settings that git may find in a configuration, with lower-case keys. It omits no
// key that git finds: a continuation line also counts as a setting. Values keep their backslashes.
func ParseSettings(text []byte) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		var section string
		for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
			line = strings.TrimSpace(line)
			for strings.HasPrefix(line, "[") {
				section, line = parseSection(line[1:])
			}
			end := strings.IndexFunc(line, func(r rune) bool {
				return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
			})
			if end < 0 {
				end = len(line)
			}
			key, rest := strings.ToLower(line[:end]), strings.TrimSpace(line[end:])
			if key != "" && !yield(section+"."+key, unquoteValue(strings.TrimPrefix(rest, "="))) {
				return
			}
		}
	}
}

// parseSection parses the name of a section, without its first bracket, and returns the rest of the line.
func parseSection(line string) (section, rest string) {
	quoted := false
	var name strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			name.WriteByte(line[i])
		case c == '"':
			if quoted = !quoted; quoted {
				name.WriteByte('.')
			}
		case c == ']' && !quoted:
			return strings.ToLower(name.String()), strings.TrimSpace(line[i+1:])
		case quoted || c != ' ' && c != '\t':
			name.WriteByte(c)
		}
	}
	return strings.ToLower(name.String()), ""
}

// unquoteValue returns a value without its quotes and trailing comment.
func unquoteValue(value string) string {
	var text strings.Builder
	quoted := false
	for _, r := range strings.TrimSpace(value) {
		switch {
		case r == '"':
			quoted = !quoted
		case !quoted && (r == '#' || r == ';'):
			return strings.TrimSpace(text.String())
		default:
			text.WriteRune(r)
		}
	}
	return text.String()
}

// MayRunProgram reports whether git may run a program because of a repository's setting, or may use a protocol
// that runs one. It excludes settings that name other files, such as include.path.
func MayRunProgram(key, value string) bool {
	section, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndexByte(key, '.')+1:]
	switches := []string{"", "true", "false", "yes", "no", "on", "off", "0", "1"}
	switch {
	case last == "fsmonitor" || section == "pager":
		return !slices.Contains(switches, strings.ToLower(value)) // true selects git's built-in monitor
	case section == "filter" && strings.HasPrefix(value, "git-lfs ") &&
		!strings.ContainsAny(value, ";&|<>`$()\\\n"):
		return false // standard git-lfs commands
	case section == "protocol":
		return last == "allow" && value != "never"
	case last == "path":
		return section != "include" && section != "includeif" && section != "submodule"
	}
	ends := func(end string) bool { return strings.HasSuffix(last, end) }
	return section == "alias" || strings.HasPrefix(value, "!") || slices.Contains(programKeys, last) ||
		slices.Contains(toolKeys, last) || slices.ContainsFunc([]string{"command", "cmd", "hook"}, ends)
}

// toolKeys are last parts of keys that name interactive tools, or where git finds its programs.
var toolKeys = []string{
	"pager", "editor", "external", "difffilter", "hookspath", "attributesfile", "templatedir",
	"browser", "httpd", "modulepath", "smtpserver", "tunnel",
}
