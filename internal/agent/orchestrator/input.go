package orchestrator

import (
	"strings"
	"unicode"
)

// input is a slash, a bang or a prompt.
type input interface{ isInput() }

type (
	slashInput  struct{ name, args string }
	bangInput   string
	promptInput string
)

func (slashInput) isInput()  {}
func (bangInput) isInput()   {}
func (promptInput) isInput() {}

// parseInput classifies an input by its first character, after trimming: text that begins with "/"
// or "!" is a command and never goes to the model; all other text goes to the model unchanged.
func parseInput(line string) input {
	trimmed := strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(trimmed, "!"); ok {
		return bangInput(strings.TrimSpace(rest))
	}
	if rest, ok := strings.CutPrefix(trimmed, "/"); ok {
		name, args := rest, ""
		if i := strings.IndexAny(rest, " \t\r\n"); i >= 0 {
			name, args = rest[:i], strings.TrimSpace(rest[i:])
		}
		if strings.Contains(name, "/") { // a path: command names have no slash
			return promptInput(line)
		}
		return slashInput{strings.ToLower(name), args}
	}
	return promptInput(line)
}

// isCommandName reports whether s can name a command: letters of any script first, then
// letters, digits, dashes, underscores and colons.
func isCommandName(s string) bool {
	for i, r := range s {
		if !unicode.IsLetter(r) && (i == 0 || !unicode.IsMark(r) && !strings.ContainsRune("0123456789-_:", r)) {
			return false
		}
	}
	return s != ""
}

// startsWithPath reports whether the first word of an input is an existing
// path, such as /tmp. Such an input is a prompt unless it names a command.
func (o *Orchestrator) startsWithPath(input string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(input), "\n")
	word, _, _ = strings.Cut(word, " ")
	return o.Library != nil && o.Library.PathExists != nil && strings.HasPrefix(word, "/") && len(word) > 1 &&
		o.Library.PathExists(word)
}
