package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"coder/internal/core/message"
	"coder/internal/host/repofile"

	"golang.org/x/sys/unix"
)

// Pin identifies a folder's content at some time. Hash covers names, contents and execute permission.
// Stamp covers the system's metadata of each file: it is equal only if nothing was written since,
// because only the system sets the change time. It is empty if that time was too recent to be sure.
type Pin struct {
	Hash  string `json:"hash"`
	Stamp string `json:"stamp,omitempty"`
}

const (
	// unpinnedDir is what does not count in a folder: a repository changes whenever git reads it. coder reads
	// no part of a plugin there, and the plugin's programs do not see it.
	unpinnedDir = ".git"

	maxEntries = 20000
	maxBytes   = 256 << 20
	// minStampAge is the minimum age of the last change for a valid stamp:
	// two writes may fall into one tick of the system's clock.
	minStampAge = 2 * time.Second
)

// UnpinnedDir returns the part of the folder that the pin does not cover. The plugin's programs must not see it.
func (p Plugin) UnpinnedDir() string { return filepath.Join(p.Dir, unpinnedDir) }

// newPin returns the pin of dir.
func newPin(dir string, now time.Time) (p Pin, err error) {
	stamp, last, err := statStamp(dir) // first, so that later changes alter the stamp
	if err != nil {
		return p, err
	}
	if now.Sub(last) > minStampAge {
		p.Stamp = stamp
	}
	sum := sha256.New()
	err = walkDir(dir, func(name string, st *unix.Stat_t) error {
		full := filepath.Join(dir, name)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			to, err := os.Readlink(full)
			fmt.Fprintf(sum, "link %q %q\n", name, to)
			return err
		case unix.S_IFREG:
			fmt.Fprintf(sum, "file %q %v %d\n", name, st.Mode&0o111 != 0, st.Size)
			f, err := os.OpenFile(full, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			n, err := io.Copy(sum, io.LimitReader(f, st.Size+1))
			if err == nil && n != st.Size {
				err = message.Errorf("another program is changing %s", name)
			}
			return err
		}
		return nil
	})
	p.Hash = hex.EncodeToString(sum.Sum(nil))
	return p, err
}

// SameContent reports whether two folders could be pinned and have the same content.
func SameContent(a, b string) bool {
	one, err := newPin(a, time.Time{})
	other, bad := newPin(b, time.Time{})
	return err == nil && bad == nil && one.Hash == other.Hash
}

// statStamp hashes the metadata of the files in dir, and returns the time of the last change.
func statStamp(dir string) (sum string, last time.Time, err error) {
	all := sha256.New()
	err = walkDir(dir, func(name string, st *unix.Stat_t) error {
		changed := time.Unix(st.Ctim.Unix())
		if changed.After(last) {
			last = changed
		}
		fmt.Fprintf(all, "%q %o %d %d %d %d %d\n", name, st.Mode, st.Size, st.Mtim.Nano(), changed.UnixNano(), st.Ino, st.Dev)
		return nil
	})
	return hex.EncodeToString(all.Sum(nil)), last, err
}

// walkDir visits everything in dir, in order. It returns an error for anything that a plugin cannot contain.
func walkDir(dir string, visit func(name string, st *unix.Stat_t) error) error {
	entries, size := 0, int64(0)
	return filepath.WalkDir(dir, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if full == filepath.Join(dir, unpinnedDir) && d.Type()&fs.ModeSymlink == 0 {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(full, &st); err != nil {
			return err
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
		case unix.S_IFREG:
			size += st.Size
		case unix.S_IFLNK:
			if _, err := repofile.NewRoot(dir).Stat(name); errors.Is(err, repofile.ErrOutside) ||
				errors.Is(err, repofile.ErrLinkLoop) {
				return message.Errorf("%s: %s", name, repofile.Reason(err))
			}
			if to, err := filepath.EvalSymlinks(full); err == nil {
				if rel, err := filepath.Rel(filepath.Join(dir, unpinnedDir), to); err == nil && filepath.IsLocal(rel) {
					return message.Errorf("%s: a link into %s, which may change unnoticed", name, unpinnedDir)
				}
			}
		default:
			return message.Errorf("%s: %w", name, repofile.ErrNotRegular)
		}
		if entries++; entries > maxEntries {
			return message.Errorf("more than %d files", maxEntries)
		}
		if size > maxBytes {
			return message.Errorf("larger than %d MB", maxBytes>>20)
		}
		return visit(name, &st)
	})
}
