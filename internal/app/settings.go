package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/core/message"
	"coder/internal/policy/trust"
)

// Settings are a workspace's settings: its location, its trust, and its configuration.
type Settings struct {
	Home    string // CODER_HOME; "" if there is none
	Project string // the folder with the configuration
	Root    string // the workspace: the same folder, unless configured
	Trust   trust.Registry
	Trusted trust.State
	Config  config.Config
	Report  config.Report
	Files   []string // the configuration's files

	configFile string // from the command line
	warnings   []string
}

// Load finds the workspace and reads its configuration. With an error, it still returns what it found.
func Load(env Env, o Options) (s Settings, err error) {
	return loadSettings(env, o, trust.Registry.StateOf)
}

// loadSettings is Load with a function that decides about trust.
func loadSettings(env Env, o Options, state func(trust.Registry, string) (trust.State, error)) (s Settings, err error) {
	s.Home = coderHome(env)
	if s.Trust.Now = env.Now; s.Home != "" {
		s.Trust.Path = filepath.Join(s.Home, "trust.json")
	}
	if env.Dir == "" && !filepath.IsAbs(o.Dir) {
		return s, inputErrorf("the working directory no longer exists; change to another or use --cwd")
	}
	if s.Project, err = absoluteDir(env.Dir, o.Dir); err != nil {
		return s, err
	}
	s.Root = s.Project
	if o.IgnoreConfig {
		s.Trust.Path = ""
	} else if s.Trusted, err = state(s.Trust, s.Root); err != nil {
		s.warnings = append(s.warnings, fmt.Sprintf("the workspace is treated as untrusted: %v", err))
	}
	if s.configFile = o.ConfigFile; s.configFile != "" && !filepath.IsAbs(s.configFile) {
		s.configFile = filepath.Join(env.Dir, s.configFile)
	}
	from := config.Options{Home: s.Home, Project: s.Project, ExtraFile: s.configFile, Getenv: env.Getenv,
		TrustProject: s.Trusted == trust.Trusted, Managed: env.Managed}
	if o.IgnoreConfig {
		from.Home, from.Project = "", ""
	}
	set := func(given bool, key string, value any, flag string) {
		if given {
			from.Flags = append(from.Flags, config.Override{Key: key, Value: value, Name: flag})
		}
	}
	set(o.Profile != "", "profile", o.Profile, "--profile")
	set(o.Provider != "", "provider.preset", o.Provider, "--provider")
	set(o.Model != "", "provider.model", o.Model, "--model")
	set(o.FallbackModel != "", "provider.fallback_models", []string{o.FallbackModel}, "--fallback-model")
	set(o.MaxSteps > 0, "runtime.max_steps", o.MaxSteps, "--max-steps")
	set(o.Effort != "", "provider.effort", o.Effort, "--effort")
	set(o.MaxBudgetUSD > 0, "runtime.budget.usd", o.MaxBudgetUSD, "--max-budget-usd")
	set(o.Lang != "", "ui.lang", o.Lang, "--lang")
	set(o.NoColor, "ui.color", "never", "--no-color")
	set(o.AutoApprove, "approval.auto_approve_ask", true, "--auto-approve")
	for _, pair := range o.Set {
		key, text, ok := strings.Cut(pair, "=")
		if !ok {
			return s, &Error{KindConfig, message.Errorf("-s %s: want KEY=VALUE", key)}
		}
		value, err := config.ParseValue(key, text)
		if err != nil {
			return s, &Error{KindConfig, message.Errorf("-s %w", err)}
		}
		set(true, key, value, "-s")
	}
	s.Files = from.Files()
	if s.Config, s.Report, err = config.Load(from); err != nil {
		return s, &Error{KindConfig, err}
	}
	for _, w := range s.Report.Warnings {
		s.warnings = append(s.warnings, w.String())
	}
	return s, nil
}

// coderHome returns CODER_HOME, or "" if there is none.
func coderHome(env Env) string {
	if home := env.Getenv("CODER_HOME"); home != "" {
		return home
	}
	if home := env.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".coder")
	}
	return ""
}

// absoluteDir resolves dir from base and makes sure that it is a folder.
func absoluteDir(base, dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", inputErrorf("folder %s does not exist", dir)
	case err != nil:
		return "", inputErrorf("cannot work in %s: %v", dir, err)
	case !info.IsDir():
		return "", inputErrorf("%s is not a folder", dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real, nil // a folder is the same project under every name
	}
	return filepath.Clean(dir), nil
}

// userDirs returns the folders with the user's files for coder and for all agents; "" if they are not read.
func (a *Site) userDirs() (coders, all string) {
	if a.Options.IgnoreConfig {
		return "", ""
	}
	return a.Home, a.Env.Getenv("HOME")
}

// resolvePath resolves a path in the settings: from the home folder after ~/, otherwise from the workspace.
func (a *Site) resolvePath(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && a.Env.Getenv("HOME") != "" {
		path = filepath.Join(a.Env.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Root, path)
	}
	return path
}

// NeedsTrust reports whether a project setting under prefix was ignored because the project is not trusted.
func (s *Settings) NeedsTrust(prefix string) bool {
	return s.Trusted != trust.Trusted && slices.ContainsFunc(s.Report.Warnings,
		func(w config.Warning) bool { return strings.HasPrefix(w.Key, prefix) })
}
