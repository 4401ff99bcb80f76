package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"coder/internal/prompt"
	"coder/internal/repofile"
)

// rules are what the person and the project have written down for the model.
// What cannot be used is left out, and said to be.
func (h *house) rules() []prompt.Rule {
	find := prompt.Finder{
		Read:   h.readRules,
		Exists: func(path string) bool { _, err := os.Lstat(path); return err == nil },
	}
	rules, bad := find.Find(h.home, h.root)
	for _, err := range bad {
		h.ignored(err)
	}
	h.checkRepository()
	return rules
}

// readRules reads a rules file, and no more of it than can be used.
func (h *house) readRules(root, path string) (text []byte, err error) {
	var more bool
	if root == "" {
		text, more, err = repofile.OwnHead(path, prompt.RulesLimit)
	} else if rel, outside := filepath.Rel(root, path); outside == nil {
		text, more, err = repofile.Below(root).Head(rel, prompt.RulesLimit)
	}
	if more {
		h.warn(fmt.Sprintf("%s is too long for rules: only its first %d bytes are used", path, prompt.RulesLimit))
	}
	if err == nil && len(text) == 0 {
		return nil, fs.ErrNotExist
	}
	return text, err
}

// ignored says that a file is not used, and why.
func (h *house) ignored(err error) {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		h.warn(fmt.Sprintf("%s is ignored: %s", p.Path, p.Err))
		return
	}
	h.warn(err.Error())
}

// checkRepository says so if the repository is one that git would wait for: it
// counts as none.
func (h *house) checkRepository() {
	if err := repofile.CheckGit(h.root); err != nil {
		h.ignored(err)
	}
}
