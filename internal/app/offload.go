package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
)

// putAside keeps results that are too long for the conversation beside the
// output of commands, each once. Where nothing is kept it is nil.
func (a *App) putAside(t *toolkit, sessionID string) func(context.Context, string, string) (string, error) {
	if a.Options.Ephemeral {
		return nil
	}
	return func(_ context.Context, callID, text string) (string, error) {
		sum := sha256.Sum256([]byte(callID)) // a model may call its calls anything
		name := path.Join(".coder", "runs", sessionID, "result-"+hex.EncodeToString(sum[:6])+".txt")
		err := t.project.ws.CreateFile(name, []byte(text), 0o600)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return name, err
	}
}
