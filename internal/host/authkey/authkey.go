// Package authkey manages the secret key that identifies this program's own writing. The key is under
// the user's ~/.coder, where no command can read it. A signature by it proves that this user's coder
// wrote the data on this machine; anything else in a workspace is untrusted text.
package authkey

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"coder/internal/core/message"
	"coder/internal/host/atomicfile"
	"coder/internal/host/disk"

	"golang.org/x/sys/unix"
)

const keySize = 32 // key size in bytes

// Path returns the path of the key in the user's state directory.
func Path(home string) string { return filepath.Join(home, "key") }

// Key signs and verifies. A nil Key signs nothing and verifies nothing.
type Key struct{ secret []byte }

// Open reads the key below home, or creates it. It rejects a key that others can read, or that is not a
// regular file of this user.
func Open(home string) (*Key, error) {
	k, err := readKey(Path(home))
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := createKey(home); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, message.Errorf("create the key: %w", err)
	}
	return readKey(Path(home)) // another process may have created it first
}

// NewTemporary returns a key that only this process has: later processes cannot verify its signatures.
func NewTemporary() *Key {
	secret := make([]byte, keySize)
	rand.Read(secret)
	return &Key{secret}
}

func readKey(path string) (*Key, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, message.Errorf("open the key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, message.Errorf("open the key: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, message.Errorf("the key %s must be a regular file that only you can read (mode 0600)", path)
	}
	secret, err := io.ReadAll(io.LimitReader(f, keySize+1))
	if err != nil {
		return nil, message.Errorf("read the key: %w", err)
	}
	if len(secret) != keySize {
		return nil, message.Errorf("the key %s is damaged: %d bytes, expected %d", path, len(secret), keySize)
	}
	return &Key{secret}, nil
}

// createKey writes a new key to a temporary file and links it into place, so that no reader sees a part of
// it and the first of several creators wins.
func createKey(home string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	release, err := atomicfile.HoldDir(home)
	if err != nil {
		return err
	}
	defer release()
	f, err := os.CreateTemp(home, atomicfile.TempPrefix+"*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(NewTemporary().secret)
	disk.Trace("sync", f.Name())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), Path(home)); err != nil {
		return err
	}
	disk.Trace("name", Path(home))
	return disk.SyncDirs(disk.System, home, filepath.Dir(home)) // signatures are worthless without the key
}

// Sign returns the signature of parts, in order, for one purpose. It does not verify for another purpose
// or another division into parts.
func (k *Key) Sign(purpose string, parts ...[]byte) string {
	if k == nil {
		return ""
	}
	return hex.EncodeToString(k.mac(purpose, parts))
}

// Verify reports whether Sign returned signature for the same arguments.
func (k *Key) Verify(signature, purpose string, parts ...[]byte) bool {
	if k == nil {
		return false
	}
	got, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(got, k.mac(purpose, parts))
}

func (k *Key) mac(purpose string, parts [][]byte) []byte {
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
