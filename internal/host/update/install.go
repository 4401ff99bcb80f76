package update

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/disk"
	"coder/internal/host/program"
	"coder/internal/host/repofile"

	"golang.org/x/sys/unix"
)

// Archive is an unpacked release.
type Archive struct {
	version string
	program []byte
	share   map[string][]byte // manual page and completions, by path below the prefix
}

const (
	maxProgram   = 256 << 20
	startTimeout = 30 * time.Second
)

// unpack reads the program, its manual page and completions. It skips everything else.
func (a *Archive) unpack(r io.Reader) error {
	zr, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	tr := tar.NewReader(io.LimitReader(zr, maxProgram))
	a.share = make(map[string][]byte)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(h.Name, "/")
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) || name != "bin/coder" && !strings.HasPrefix(name, "share/") {
			continue
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			return err
		}
		if name == "bin/coder" {
			a.program = text
		} else {
			a.share[name] = text
		}
	}
	if a.program == nil {
		return errors.New("the archive has no program")
	}
	return nil
}

// CheckReplaceable returns an error if the program at path cannot be replaced.
func CheckReplaceable(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case unix.Getuid() != unix.Geteuid() || unix.Getgid() != unix.Getegid() ||
		info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return errors.New("coder runs with the rights of another user (setuid), so it replaces nothing")
	case !info.Mode().IsRegular():
		return message.Errorf("%s is not a regular file", path)
	}
	if err := unix.Access(filepath.Dir(path), unix.W_OK); err != nil {
		return message.Errorf("you cannot write to %s: %w", filepath.Dir(path), err)
	}
	return nil
}

// BackupPath returns where the previous version of the program at path is saved.
func BackupPath(path string) string { return path + ".old" }

// Install replaces the program at path by the archive's, and saves the previous one at [BackupPath].
// It also replaces an existing manual page and existing completions.
func (a Archive) Install(ctx context.Context, path string) error {
	if err := CheckReplaceable(path); err != nil {
		return err
	}
	before, err := os.Lstat(path)
	if err != nil {
		return err
	}
	atomicfile.Sweep(filepath.Dir(path), ".") // from killed updates
	next := path + ".new"
	defer os.Remove(next) // already gone on success
	if err := atomicfile.Write(next, a.program, before.Mode().Perm()); err != nil {
		return err
	}
	version, err := runVersion(ctx, next)
	if err == nil && version != a.version {
		err = message.Errorf("reports version %q", version)
	}
	if err != nil {
		return message.Errorf("coder %s does not start here, so coder did not install it: %w", a.version, err)
	}
	if now, err := os.Lstat(path); err != nil || !os.SameFile(before, now) {
		return message.Errorf("another process replaced %s meanwhile", path)
	}
	if err := saveBackup(path, before); err != nil {
		return message.Errorf("keep the old program: %w", err)
	}
	if err := disk.System.Rename(next, path); err != nil {
		return err
	}
	return errors.Join(disk.SyncDir(filepath.Dir(path)), a.installShared(filepath.Dir(filepath.Dir(path))))
}

// saveBackup saves the program at path at [BackupPath], by a hard link or, where these are not
// supported, by a copy.
func saveBackup(path string, info fs.FileInfo) error {
	second := path + ".keep"
	_ = os.Remove(second) // left by a killed update
	if os.Link(path, second) == nil {
		return disk.System.Rename(second, BackupPath(path))
	}
	text, err := repofile.ReadOwn(path, maxProgram)
	if err != nil {
		return err
	}
	return atomicfile.Write(BackupPath(path), text, info.Mode().Perm())
}

// installShared replaces the manual page and the completions that exist below prefix.
func (a Archive) installShared(prefix string) (err error) {
	for name, text := range a.share {
		at := filepath.Join(prefix, filepath.FromSlash(name))
		if info, gone := os.Lstat(at); gone == nil && info.Mode().IsRegular() {
			err = errors.Join(err, atomicfile.Write(at, text, info.Mode().Perm()))
		}
	}
	if err != nil {
		err = message.Errorf("the program is updated, but not its manual page and completions: %w", err)
	}
	return err
}

// runVersion runs a program once and returns the version that it prints.
func runVersion(ctx context.Context, path string) (version string, err error) {
	ctx, stop := context.WithTimeout(ctx, startTimeout)
	defer stop()
	cmd := program.TrustedCommand(ctx, path, "--version")
	cmd.Dir, cmd.Env, cmd.WaitDelay = "/", []string{"HOME=/nonexistent"}, time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(out))
	if len(words) < 2 || words[0] != "coder" {
		return "", errors.New("does not print a version")
	}
	return words[1], nil
}

// Rollback swaps the program at path with the one saved by the last update, and
// returns the version that is now at path.
func Rollback(ctx context.Context, path string) (version string, err error) {
	if err := CheckReplaceable(path); err != nil {
		return "", err
	}
	if info, err := os.Lstat(BackupPath(path)); err != nil || !info.Mode().IsRegular() {
		return "", message.Errorf("no older program at %s", BackupPath(path))
	}
	if version, err = runVersion(ctx, BackupPath(path)); err != nil {
		return "", message.Errorf("%s does not start here: %w", BackupPath(path), err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	next := path + ".new"
	if err := disk.System.Rename(BackupPath(path), next); err != nil {
		return "", err
	}
	if err := saveBackup(path, info); err != nil {
		return "", errors.Join(err, disk.System.Rename(next, BackupPath(path)))
	}
	if err := disk.System.Rename(next, path); err != nil {
		return "", errors.Join(err, disk.System.Rename(next, BackupPath(path)))
	}
	return version, disk.SyncDir(filepath.Dir(path))
}
