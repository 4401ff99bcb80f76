package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/authored/mention"
	"coder/internal/host/repofile"
	"coder/internal/ui/lineedit"
)

// maxChoices is how many completions are offered at most.
const maxChoices = 200

// complete offers what may stand at the cursor: a command at the start of the
// line, its argument, or a file after an @.
func (c *console) complete(draft string, cursor int) (start int, choices []lineedit.Choice) {
	before := draft[:cursor]
	start = strings.LastIndexAny(before, " \t\n") + 1
	word := before[start:]
	switch {
	case start == 0 && strings.HasPrefix(word, "/"):
		return start, c.completeCommand(word)
	case strings.HasPrefix(word, "@"):
		return start, c.completePath(word)
	case strings.HasPrefix(before, "/resume "):
		return start, completeWords(word, c.sessionIDs())
	case strings.HasPrefix(before, "/model "):
		return start, completeWords(word, c.conf.Provider.Models)
	}
	return start, nil
}

func completeWords(word string, words []string) (choices []lineedit.Choice) {
	for _, w := range words {
		if strings.HasPrefix(w, word) && len(choices) < maxChoices {
			choices = append(choices, lineedit.Choice{Text: w + " "})
		}
	}
	return choices
}

func (c *console) completeCommand(word string) (choices []lineedit.Choice) {
	for _, cmd := range c.session.Commands() {
		if name := "/" + cmd.Name; strings.HasPrefix(name, word) {
			choices = append(choices, lineedit.Choice{Text: name + " ", Note: c.words.Said(cmd.Help)})
		}
	}
	return choices
}

// completePath offers the files whose name goes on from word. Hidden ones are
// offered only if they are asked for.
func (c *console) completePath(word string) (choices []lineedit.Choice) {
	dir, name := filepath.Split(strings.TrimPrefix(word, "@"))
	entries, err := fs.ReadDir(repofile.Below(c.root), filepath.ToSlash(filepath.Clean(dir)))
	if err != nil {
		return nil
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".") || len(choices) >= maxChoices {
			continue
		}
		text := "@" + dir + e.Name()
		if e.IsDir() {
			text += "/"
		} else {
			text = mention.Ref{Path: dir + e.Name(), Quoted: !mention.Plain(dir + e.Name())}.String() + " "
		}
		choices = append(choices, lineedit.Choice{Text: text})
	}
	return choices
}
