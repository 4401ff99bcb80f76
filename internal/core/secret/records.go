package secret

import (
	"path/filepath"
	"slices"
	"strings"
)

// RecordFolders are the folders of a .coder folder with session records: conversations, output and file
// contents. Commands see none of them.
var RecordFolders = []string{"log", "sessions", "undo", "runs", "cache", "tmp"}

// IsRecordPath reports whether a path is such a folder, or is in one, wherever the .coder folder is. It
// ignores case.
func IsRecordPath(path string) bool {
	parts := strings.Split(strings.ToLower(filepath.ToSlash(ResolveProc(path))), "/")
	for i, part := range parts[:len(parts)-1] {
		if part == ".coder" && slices.Contains(RecordFolders, parts[i+1]) {
			return true
		}
	}
	return false
}
