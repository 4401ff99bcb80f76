package program

import (
	"path/filepath"
	"slices"
	"strings"
)

// lists are variables with lists of folders or files from which programs load code.
var lists = []string{
	"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH", "DYLD_INSERT_LIBRARIES",
	"DYLD_FALLBACK_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PERL5LIB", "PERLLIB", "RUBYLIB", "NODE_PATH", "CLASSPATH",
	"GCONV_PATH", "BASH_ENV", "ENV", "SSH_ASKPASS",
}

// options are variables with options that may name such files.
var options = []string{"PERL5OPT", "RUBYOPT", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"}

// clean removes from an environment everything that leads to the places. It drops a variable that
// becomes empty, since an empty PATH means the current folder.
func (f *finder) clean(env []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, all := f.places()
	cleaned := make([]string, 0, len(env))
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case slices.Contains(lists, name):
			if value = f.outside(value, all); value == "" {
				continue
			}
			kv = name + "=" + value
		case slices.Contains(options, name):
			named := func(p place) bool { return strings.Contains(value, p.name) }
			if strings.Contains(value, "./") || slices.ContainsFunc(all, named) {
				continue
			}
		}
		cleaned = append(cleaned, kv)
	}
	return cleaned
}

// outside removes from a list the paths that lead into a place or depend on the current folder.
func (f *finder) outside(value string, places []place) string {
	if kept, done := f.passed[value]; done {
		return kept
	}
	var kept []string
	for _, path := range filepath.SplitList(value) {
		if filepath.IsAbs(path) && through(path, places) == "" {
			kept = append(kept, path)
		}
	}
	f.passed[value] = strings.Join(kept, string(filepath.ListSeparator))
	return f.passed[value]
}
