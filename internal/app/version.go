package app

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"coder/internal/config"
	"coder/internal/record/store/jsonl"
)

// developmentVersion is the version of a build that is no release.
const developmentVersion = "0.1.0-dev"

// releaseVersion is the version that a release build sets with -ldflags -X.
var releaseVersion string

// Version is coder's version: the one that the build set, or the tag that go install used.
var Version = resolveVersion(releaseVersion, debug.ReadBuildInfo)

// resolveVersion returns the version from the build or the compiler's build info. For
// a commit without a tag, the compiler invents a version that ends in the
// commit's name, and marks changed files with a plus sign: both are development.
func resolveVersion(set string, read func() (*debug.BuildInfo, bool)) string {
	if set != "" {
		return set
	}
	const commit = 12 // length of a commit's name in an invented version
	if info, ok := read(); ok && strings.HasPrefix(info.Main.Version, "v") {
		tag := strings.TrimPrefix(info.Main.Version, "v")
		if i := strings.LastIndex(tag, "-"); !strings.Contains(tag, "+") && (i < 0 || len(tag)-i-1 != commit) {
			return tag
		}
	}
	return developmentVersion
}

// WorktreeInfo is what make records about a linked worktree, whose commit the compiler
// does not find: commit, its date, and clean or dirty, separated by commas.
var WorktreeInfo string

// Build says what this program was built from, and which formats it writes.
type Build struct {
	Version  string    `json:"version"`
	Commit   string    `json:"commit,omitempty"` // "" outside a repository
	Date     time.Time `json:"date,omitzero"`    // the commit's
	Dirty    *bool     `json:"dirty,omitempty"`  // whether files differed from the commit; nil outside a repository
	Go       string    `json:"go"`
	System   string    `json:"system"`
	Sessions int       `json:"session_format"`
	Settings int       `json:"settings_format"`
}

// ReadBuild reads the compiler's build info in this program.
func ReadBuild() Build {
	b := Build{
		Version: Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Sessions: jsonl.Format, Settings: config.Format,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date, _ = time.Parse(time.RFC3339, s.Value)
		case "vcs.modified":
			dirty := s.Value == "true"
			b.Dirty = &dirty
		}
	}
	if of := strings.Split(WorktreeInfo, ","); b.Commit == "" && len(of) == 3 {
		date, _ := time.Parse(time.RFC3339, of[1])
		dirty := of[2] == "dirty"
		b.Commit, b.Date, b.Dirty = of[0], date.UTC(), &dirty
	}
	return b
}

const shortCommitLen = 12 // letters of a commit's name

// String returns the build on one line.
func (b Build) String() string {
	parts := []string{"commit " + cmp.Or(b.Commit[:min(len(b.Commit), shortCommitLen)], "unknown")}
	if !b.Date.IsZero() {
		parts = append(parts, b.Date.Format(time.DateOnly))
	}
	if b.Dirty != nil && *b.Dirty {
		parts = append(parts, "dirty")
	}
	return b.Version + " (" + strings.Join(append(parts, b.Go, b.System), ", ") + ")"
}

// recordedVersion returns the version that sessions record, for older programs to show.
func recordedVersion() string {
	b := ReadBuild()
	if b.Commit == "" {
		return b.Version
	}
	return b.Version + ", commit " + b.Commit[:min(len(b.Commit), shortCommitLen)]
}
