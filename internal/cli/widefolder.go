package cli

import (
	"path/filepath"
	"slices"
	"strings"
)

// wideFolderWarning returns a warning if the workspace, symbolic links resolved, is the whole system, the
// user's home or above, or a system folder.
func (inv *invocation) wideFolderWarning(root string) string {
	home, _ := filepath.EvalSymlinks(inv.Getenv("HOME"))
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	switch {
	case root == "/":
		return inv.printer.T("this is the root of the system, and all of it is the workspace; start coder in a project folder")
	case root == home:
		return inv.printer.T("this is your home folder, and all of it is the workspace; start coder in a project folder")
	case strings.HasPrefix(home, root+"/"):
		return inv.printer.T("your home folder is in this folder, and all of it is the workspace; start coder in a project folder")
	case slices.Contains(systemFolders, root):
		return inv.printer.T("this is a system folder, and all of it is the workspace; start coder in a project folder")
	}
	return ""
}

// warnWideFolder prints that warning if there is no terminal.
func (inv *invocation) warnWideFolder(root string) {
	if text := inv.wideFolderWarning(root); text != "" {
		inv.warn(text)
	}
}

// systemFolders are shared by programs and all users of a machine.
var systemFolders = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/usr",
	"/usr/bin", "/usr/lib", "/usr/local", "/var",
	"/Applications", "/Library", "/System", "/Users", "/private/etc", "/private/var",
}
