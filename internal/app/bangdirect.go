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

// bangKey is the setting that runs the user's ! commands without approval, and bangDirect its value for that.
const (
	bangKey    = "approval.bang"
	bangDirect = "direct"
)

// MayDirectBang reports whether the user's own settings decide about !
// commands: no stronger layer does, and the folder for these settings exists.
func (a *Workspace) MayDirectBang() bool {
	source := a.Report.Origin(bangKey).Source
	return a.Home != "" && !a.directsBang() && (source == "" || source == filepath.Join(a.Home, "config.json"))
}

// directsBang reports whether ! commands run without approval.
func (a *Workspace) directsBang() bool {
	return a.Config.Approval.Bang == bangDirect || a.bangDirect.Load()
}

// DirectBang changes the user's own settings so that ! commands run without
// approval from the next one on. The rest of the file is unchanged.
func (a *Workspace) DirectBang() error {
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
