package program

import (
	"path/filepath"
	"slices"
	"strings"
)

// codePathVars are variables with lists of folders or files from which programs load code.
var codePathVars = []string{
	"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH",
	"DYLD_INSERT_LIBRARIES",
	"DYLD_FALLBACK_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PERL5LIB", "PERLLIB", "RUBYLIB",
	"NODE_PATH", "CLASSPATH",
	"GCONV_PATH", "BASH_ENV", "ENV", "SSH_ASKPASS",
}

// codeOptionVars are variables with options that may name such files.
var codeOptionVars = []string{"PERL5OPT", "RUBYOPT", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"}

// cleanEnv removes from an environment everything that leads to the places. It drops a variable that
// becomes empty, since an empty PATH means the current folder.
func (f *finder) cleanEnv(env []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, all := f.places()
	cleaned := make([]string, 0, len(env))
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case slices.Contains(codePathVars, name):
			if value = f.dropInside(value, all); value == "" {
				continue
			}
			kv = name + "=" + value
		case slices.Contains(codeOptionVars, name):
			named := func(p untrustedDir) bool { return strings.Contains(value, p.name) }
			if strings.Contains(value, "./") || slices.ContainsFunc(all, named) {
				continue
			}
		}
		cleaned = append(cleaned, kv)
	}
	return cleaned
}

// dropInside removes from a list the paths that lead into a place or depend on the current folder.
func (f *finder) dropInside(value string, places []untrustedDir) string {
	if kept, done := f.cleaned[value]; done {
		return kept
	}
	var kept []string
	for _, path := range filepath.SplitList(value) {
		if filepath.IsAbs(path) && dirOnPath(path, places) == "" {
			kept = append(kept, path)
		}
	}
	f.cleaned[value] = strings.Join(kept, string(filepath.ListSeparator))
	return f.cleaned[value]
}
