package cli

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
func (t *terminal) complete(draft string, cursor int) (start int, choices []lineedit.Choice) {
	before := draft[:cursor]
	start = strings.LastIndexAny(before, " \t\n") + 1
	word := before[start:]
	switch {
	case start == 0 && strings.HasPrefix(word, "/"):
		return start, t.completeCommand(word)
	case strings.HasPrefix(word, "@"):
		return start, t.completePath(word)
	case strings.HasPrefix(before, "/resume "):
		return start, completeWords(word, t.app.Store().IDs())
	case strings.HasPrefix(before, "/model "):
		return start, completeWords(word, t.app.Config.Provider.Models)
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

func (t *terminal) completeCommand(word string) (choices []lineedit.Choice) {
	for _, cmd := range t.session.Commands() {
		if name := "/" + cmd.Name; strings.HasPrefix(name, word) {
			if !cmd.Authored {
				cmd.Help = t.words.Said(cmd.Help)
			}
			choices = append(choices, lineedit.Choice{Text: name + " ", Note: cmd.Help})
		}
	}
	return choices
}

// completePath offers the files whose name goes on from word. Hidden ones are
// offered only if they are asked for.
func (t *terminal) completePath(word string) (choices []lineedit.Choice) {
	dir, name := filepath.Split(strings.TrimPrefix(word, "@"))
	entries, err := fs.ReadDir(repofile.Below(t.app.Root), filepath.ToSlash(filepath.Clean(dir)))
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
