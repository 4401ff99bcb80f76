package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
)

const maxLogin = 256 << 10 // bytes

// SavedLogins stores logins to MCP servers in a folder, one file each.
type SavedLogins struct{ Dir string }

// file returns the file for the server at an address.
func (l SavedLogins) file(address string) string {
	sum := sha256.Sum256([]byte(address))
	return filepath.Join(l.Dir, hex.EncodeToString(sum[:16])+".json")
}

// Load returns the login to the server at an address, or nil.
func (l SavedLogins) Load(address string) (json.RawMessage, error) {
	text, err := repofile.ReadOwn(l.file(address), maxLogin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// Save saves a login, readable only by the user.
func (l SavedLogins) Save(address string, login json.RawMessage) error {
	if len(login) == 0 {
		return os.Remove(l.file(address))
	}
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(l.file(address), login, 0o600)
}
