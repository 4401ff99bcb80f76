package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"coder/internal/config"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/policy/trust"
)

// SettingChange is a change of one setting.
type SettingChange struct {
	Key, Value string
	Unset      bool // removes it instead
	Project    bool // in the project's settings, not in your own
}

// SettingResult describes the result of a change.
type SettingResult struct {
	Path   string // the file's
	WasSet bool   // whether the file had the setting
	Rows   []config.Row
	// Override is the origin that takes precedence over the file; zero if none does.
	Override config.Origin
}

// ChangeSetting writes one setting to a settings file and leaves the rest of it,
// including comments, unchanged. Trust in the project survives your own change.
func (s *Settings) ChangeSetting(env Env, o Options, c SettingChange) (done SettingResult, err error) {
	if o.Ephemeral {
		return done, inputErrorf("--no-session-persistence saves nothing")
	}
	edit := func(text []byte) (out []byte, err error) {
		if c.Unset {
			out, done.WasSet, err = config.RemoveKey(text, c.Key)
			return out, err
		}
		return config.SetText(text, c.Key, c.Value)
	}
	if !c.Unset {
		if err := s.checkLocked(c.Key, c.Value); err != nil {
			return done, err
		}
	}
	if c.Project && !c.Unset {
		if err := s.Report.CheckProject(c.Key, c.Value, true); err != nil {
			return done, inputErrorf("not saved in the project: %v", err)
		}
		if err := s.Report.CheckProject(c.Key, c.Value, s.Trusted == trust.Trusted); err != nil {
			return done, inputErrorf("not saved: an untrusted project may not set %s; run coder trust first, or save it in your own settings", c.Key)
		}
	}
	if c.Project {
		done.Path, err = s.editProject(edit)
	} else {
		done.Path, err = s.editOwn(edit)
	}
	if err != nil {
		return done, inputErrorf("%v", err)
	}
	next, err := Load(env, o)
	if err != nil {
		return done, err
	}
	for _, r := range next.Report.Rows() {
		if r.Key == c.Key || strings.HasPrefix(r.Key, c.Key+".") {
			done.Rows = append(done.Rows, r)
		}
	}
	if at := next.Report.Origin(c.Key); !c.Unset && at.Source != "" && at.Source != done.Path {
		done.Override = at
	}
	return done, nil
}

// editOwn changes the user's own settings.
func (s *Settings) editOwn(edit func([]byte) ([]byte, error)) (path string, err error) {
	if s.Home == "" {
		return "", errors.New("no folder for your settings: set HOME or CODER_HOME")
	}
	path = filepath.Join(s.Home, "config.json")
	return path, updateText(path, 0o600, func() ([]byte, error) { return repofile.ReadOwn(path, maxUserFile) }, edit)
}

// updateText changes a file of settings that other processes change too. A missing file is a nil text.
func updateText(path string, mode fs.FileMode, read func() ([]byte, error),
	edit func([]byte) ([]byte, error)) error {
	return atomicfile.Update(path, mode, func() ([]byte, error) {
		text, err := read()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		now, err := edit(text)
		if err != nil || string(now) == string(text) {
			return nil, err
		}
		return now, nil
	})
}

// editProject changes the project's settings. A trusted project stays trusted.
func (s *Settings) editProject(edit func([]byte) ([]byte, error)) (path string, err error) {
	root := s.Project
	path = filepath.Join(root, ".coder", "config.json")
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	trusted, _ := s.Trust.StateOf(root) // an unreadable book means no trust
	changed := false
	err = updateText(path, mode, func() ([]byte, error) {
		return repofile.NewRoot(root).Read(filepath.Join(".coder", "config.json"), maxUserFile)
	}, func(text []byte) ([]byte, error) {
		now, err := edit(text)
		changed = err == nil && string(now) != string(text)
		return now, err
	})
	if err == nil && changed && trusted == trust.Trusted {
		return path, s.Trust.Trust(root)
	}
	return path, err
}

// sessionSettings are the settings that the user changes during a session.
type sessionSettings struct{ *Workspace }

// Rows returns the current settings.
func (a sessionSettings) Rows() []config.Row { return a.settings() }

// Change saves a setting, and applies it at once if possible; said has further notes.
func (a sessionSettings) Change(key, value string, unset bool) (said string, err error) {
	if key == styleKey && !unset {
		if _, err := a.findStyle(value); err != nil {
			return "", err
		}
	}
	done, err := a.ChangeSetting(a.Env, a.Options, SettingChange{Key: key, Value: value, Unset: unset})
	if err != nil {
		return "", err
	}
	now := ""
	for _, r := range done.Rows {
		if r.Key == key {
			now = strings.Trim(r.Value, `"`)
		}
	}
	switch {
	case unset && !done.WasSet:
		return fmt.Sprintf("%s is not set in %s", key, done.Path), nil
	case done.Override.Source != "":
		return fmt.Sprintf("saved to %s, but %s takes precedence", done.Path, done.Override.DisplayText()), nil
	case key == "provider.effort":
		a.UseEffort(now)
	case key == "ui.theme":
		a.chosenTheme.Store(&now)
	case key == styleKey:
		style, err := a.findStyle(now)
		if err != nil {
			return "", err
		}
		a.style.Store(&style)
	default:
		return fmt.Sprintf("saved to %s; it applies from the next start", done.Path), nil
	}
	return fmt.Sprintf("saved to %s", done.Path), nil
}

// Theme returns the screen's theme: the configured one, or the one chosen since.
func (a *Workspace) Theme() string {
	if t := a.chosenTheme.Load(); t != nil {
		return *t
	}
	return a.Config.UI.Theme
}
