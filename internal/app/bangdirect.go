package app

import (
	"path/filepath"

	"coder/internal/config"
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
	_, err := a.editOwn(func(text []byte) ([]byte, error) { return config.SetValue(text, bangSetting, bangDirectValue) })
	if err != nil {
		return inputErrorf("%v", err)
	}
	a.bangDirect.Store(true)
	return nil
}
