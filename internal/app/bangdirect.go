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

// bangSetting is the setting that runs the user's ! commands without approval, and bangDirectValue its value for that.
const (
	bangSetting     = "approval.bang"
	bangDirectValue = "direct"
)

// CanTrustBang reports whether the user's own settings decide about !
// commands: no stronger layer does, and the folder for these settings exists.
func (a *Workspace) CanTrustBang() bool {
	source := a.Report.Origin(bangSetting).Source
	return a.Home != "" && !a.isBangTrusted() && (source == "" || source == filepath.Join(a.Home, "config.json"))
}

// isBangTrusted reports whether ! commands run without approval.
func (a *Workspace) isBangTrusted() bool {
	return a.Config.Approval.Bang == bangDirectValue || a.bangDirect.Load()
}

// TrustBang changes the user's own settings so that ! commands run without
// approval from the next one on. The rest of the file is unchanged.
func (a *Workspace) TrustBang() error {
	path := filepath.Join(a.Home, "config.json")
	text, err := repofile.ReadOwn(path, maxUserFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return inputErrorf("%v", err)
	}
	if text, err = config.SetValue(text, bangSetting, bangDirectValue); err != nil {
		return inputErrorf("%v", err)
	}
	if err := os.MkdirAll(a.Home, 0o700); err != nil {
		return inputErrorf("%v", err)
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return inputErrorf("%v", err)
	}
	a.bangDirect.Store(true)
	return nil
}
