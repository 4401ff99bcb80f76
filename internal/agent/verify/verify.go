// Package verify answers, without doing anything itself, the three questions
// of a check after an edit: is one needed ([Needed]), which command is it
// ([Choose]), and what does its outcome mean ([Judge]). Only the commands of a
// fixed whitelist are ever chosen.
package verify

import (
	"path"
	"slices"
	"strings"

	"coder/internal/policy/mode"
)

// Words that people and other programs look for in what is shown or sent.
const (
	NotRun     = "未执行自动验证"
	FixAgain   = "请修复并再次验证"
	BestEffort = "best-effort"
)

// Facts is what the decision rests on.
type Facts struct {
	When        mode.Verify
	Edited      []string // paths this turn wrote, relative to the workspace
	Asked       bool     // the person asked for a check, see [AskedFor]
	Enabled     bool     // workflow.auto_verify_after_edit
	BashAllowed bool     // bash is switched on and not denied
	Attempts    int      // repairs asked for so far in this turn
	MaxAttempts int      // workflow.max_verify_attempts
}

// Why is a reason to check or not to.
type Why string

// The reasons.
const (
	Edits         Why = "files were edited"
	NothingEdited Why = "nothing was edited"
	OnlyDocuments Why = "only documents were edited"
	SwitchedOff   Why = "verification is switched off"
	ModeNever     Why = "this mode does not verify"
	NotAsked      Why = "nobody asked for verification"
	NoBash        Why = "bash is not available"
	Exhausted     Why = "all repair attempts are used up"
)

// Worth reports whether a person should be told of w: they expected a check and
// there is none.
func (w Why) Worth() bool { return w == NoBash || w == Exhausted }

// Needed says whether the turn that f describes is to be checked: if it is, for its Edits.
func Needed(f Facts) Why {
	switch {
	case len(f.Edited) == 0:
		return NothingEdited
	case !slices.ContainsFunc(f.Edited, IsCode):
		return OnlyDocuments
	case !f.Enabled:
		return SwitchedOff
	case f.When == mode.Never:
		return ModeNever
	case f.When == mode.OnRequest && !f.Asked:
		return NotAsked
	case !f.BashAllowed:
		return NoBash
	case f.Attempts > f.MaxAttempts:
		return Exhausted
	}
	return Edits
}

// MayRepair reports whether a failed check may still ask for a repair. At most
// max repairs are asked for, so that at most max+1 checks run.
func MayRepair(attempts, max int) bool { return attempts < max }

// documentEndings and documentNames say which files no test looks at. Of text
// files some are code.
var (
	documentEndings = []string{".md", ".markdown", ".mdown", ".rst", ".adoc", ".asciidoc", ".org", ".textile", ".txt", ".text", ".rtf", ".pdf", ".docx", ".odt", ".log", ".tex", ".bib"}
	documentNames   = []string{"readme", "license", "licence", "copying", "notice", "authors", "contributors", "maintainers", "codeowners", "changelog", "changes", "news", "history", "todo", "notes", "thanks", ".gitignore", ".gitattributes", ".mailmap"}
)

// IsCode reports whether a file is anything that a check may look at.
func IsCode(file string) bool {
	file = path.Clean(strings.ToLower(strings.ReplaceAll(file, `\`, "/")))
	return !strings.HasPrefix(file, "docs/") &&
		(!slices.Contains(documentEndings, path.Ext(file)) || codeText(file)) &&
		!slices.Contains(documentNames, path.Base(file))
}

// codeText reports whether a text file is one that tests may look at.
func codeText(file string) bool {
	name := path.Base(file)
	return strings.HasPrefix(name, "requirements") || strings.HasPrefix(name, "constraints") || name == "cmakelists.txt" || strings.Contains(file, "test")
}
