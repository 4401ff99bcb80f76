// Package authkey holds the one secret by which this program knows its own
// handwriting: a key kept under the person's ~/.coder that no command can read.
// What was signed with it was written by this user's coder on this machine;
// whatever else a workspace holds is only text.
package authkey

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"coder/internal/host/atomicfile"
	"coder/internal/host/disk"

	"golang.org/x/sys/unix"
)

const size = 32 // bytes of the key

// Path is where the key of the person whose state directory is home is kept.
func Path(home string) string { return filepath.Join(home, "key") }

// Key signs and verifies. The nil Key signs nothing and believes nothing.
type Key struct{ secret []byte }

// Open reads the key below home, and makes one where there is none. A key that
// others can read, or that is no plain file of this user's, is refused.
func Open(home string) (*Key, error) {
	k, err := read(Path(home))
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := create(home); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create the key: %w", err)
	}
	return read(Path(home)) // also where another process made it first
}

// Temporary is a key that nobody else has, and that is gone with the process:
// what it signed, a later one does not believe.
func Temporary() *Key {
	secret := make([]byte, size)
	rand.Read(secret)
	return &Key{secret}
}

func read(path string) (*Key, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open the key: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the key %s must be a regular file that only you can read (mode 0600)", path)
	}
	secret, err := io.ReadAll(io.LimitReader(f, size+1))
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	if len(secret) != size {
		return nil, fmt.Errorf("the key %s is damaged: %d bytes, expected %d", path, len(secret), size)
	}
	return &Key{secret}, nil
}

// create writes a new key beside its place and links it there, so that whoever
// sees it sees the whole of it, and the first of several makers wins.
func create(home string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	release, err := atomicfile.Hold(home)
	if err != nil {
		return err
	}
	defer release()
	f, err := os.CreateTemp(home, atomicfile.Prefix+"*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(Temporary().secret)
	disk.Trace("sync", f.Name())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), Path(home)); err != nil {
		return err
	}
	disk.Trace("name", Path(home))
	return disk.SyncDirs(disk.System, home, filepath.Dir(home)) // without the key nothing that it signed counts
}

// Sign returns the signature of parts, in this order, for one purpose: what was
// signed for another, or divided otherwise, does not verify.
func (k *Key) Sign(purpose string, parts ...[]byte) string {
	if k == nil {
		return ""
	}
	return hex.EncodeToString(k.sum(purpose, parts))
}

// Verify reports whether signature is what Sign returned for the same words.
func (k *Key) Verify(signature, purpose string, parts ...[]byte) bool {
	if k == nil {
		return false
	}
	got, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(got, k.sum(purpose, parts))
}

func (k *Key) sum(purpose string, parts [][]byte) []byte {
	mac := hmac.New(sha256.New, k.secret)
	add := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		mac.Write(n[:])
		mac.Write(b)
	}
	add([]byte(purpose))
	for _, p := range parts {
		add(p)
	}
	return mac.Sum(nil)
}
