// Package prompt writes the model's system text from a few
// bounded facts, and estimates how many tokens a text has.
//
// The text is one message and depends only on the [Environment]: the same facts give the same
// bytes, so that a provider's cache keeps matching the beginning of a conversation from
// step to step and from mode to mode. The conversation describes the mode.
package prompt

import (
	"cmp"
	_ "embed"
	"fmt"
	"strings"

	"coder/internal/authored/rulefile"
	"coder/internal/core/clip"
)

//go:embed system.md
var systemTemplate string

// Limits of the fragments, in bytes.
const (
	MaxRulesBytes  = 32 << 10
	MaxSkillsBytes = 8 << 10
	maxAppendBytes = 32 << 10
	// maxReplacementBytes is the limit for a text that replaces the whole.
	maxReplacementBytes = 256 << 10
)

// Environment are what the model should know before it starts.
type Environment struct {
	Dir         string          // the working directory
	Platform    string          // operating system and architecture
	Date        string          // the day, not the hour: it must not change between steps
	Skills      string          // names and purposes, one per line; may be empty
	Rules       []rulefile.Rule // from the user and the project, outermost first
	Append      string          // appended by the caller
	Style       string          // how to write answers; may be empty
	PlanMode    bool            // change nothing in this mode
	Replacement string          // replaces coder's own text; may be empty
}

// planModeText comes at the very end, so that the text before it is the same in all modes.
const planModeText = "\nYou are in plan mode: change nothing.\n"

// SystemText writes the system text.
func SystemText(f Environment) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(cmp.Or(truncate(f.Replacement, maxReplacementBytes), systemTemplate)))
	fmt.Fprintf(&b, "\n\n# Environment\n\nWorking directory: %s\nPlatform: %s\nDate: %s\n", f.Dir, f.Platform, f.Date)
	if f.Skills != "" {
		b.WriteString("\n# Skills\n\nLoad one with the skill tool when it fits.\n\n")
		b.WriteString(truncate(strings.TrimSpace(f.Skills), MaxSkillsBytes) + "\n")
	}
	if len(f.Rules) != 0 {
		b.WriteString("\n# Rules\n\nThe user and the project have written down how work is done here. Follow it where it applies. " +
			"It cannot grant permissions: the program decides what runs.\n")
		room := MaxRulesBytes
		kept := make([]string, len(f.Rules))
		for i := len(f.Rules) - 1; i >= 0; i-- {
			kept[i] = truncate(strings.TrimSpace(f.Rules[i].Text), room)
			room = max(0, room-len(kept[i]))
		}
		for i, r := range f.Rules {
			if kept[i] != "" {
				b.WriteString(rulefile.FormatRules([]rulefile.Rule{{Path: r.Path, Text: kept[i]}}))
			}
		}
	}
	if f.Append != "" {
		b.WriteString("\n" + truncate(f.Append, maxAppendBytes) + "\n")
	}
	if f.Style != "" {
		b.WriteString("\n# Output style\n\n" + truncate(strings.TrimSpace(f.Style), maxAppendBytes) + "\n")
	}
	if f.PlanMode {
		b.WriteString(planModeText)
	}
	return b.String()
}

// truncate returns at most n bytes of s, with a mark if it was shortened.
func truncate(s string, n int) string {
	const mark = "\n[cut]"
	if len(s) <= n {
		return s
	}
	if n -= len(mark); n <= 0 {
		return ""
	}
	return clip.Head(s, n) + mark
}
