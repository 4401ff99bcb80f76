package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"coder/internal/config"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

// bangKey is the setting that lets the commands of a person run unasked, and bangDirect its value
// for that.
const (
	bangKey    = "approval.bang"
	bangDirect = "direct"
)

// MayDirectBang reports whether the person's own settings decide about the commands that they
// type behind !: no stronger layer does, and there is a folder for these settings.
func (a *App) MayDirectBang() bool {
	source := a.Report.Origin(bangKey).Source
	return a.Home != "" && !a.directsBang() && (source == "" || source == filepath.Join(a.Home, "config.json"))
}

// directsBang reports whether these commands run unasked.
func (a *App) directsBang() bool { return a.Config.Approval.Bang == bangDirect || a.bangDirect.Load() }

// DirectBang writes into the person's own settings that these commands run unasked, which
// holds from the next one on. The rest of the file is unchanged.
func (a *App) DirectBang() error {
	path := filepath.Join(a.Home, "config.json")
	text, err := repofile.Own(path, maxNamedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return inputf("%v", err)
	}
	if text, err = config.Set(text, bangKey, bangDirect); err != nil {
		return inputf("%v", err)
	}
	if err := os.MkdirAll(a.Home, 0o700); err != nil {
		return inputf("%v", err)
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return inputf("%v", err)
	}
	a.bangDirect.Store(true)
	return nil
}
