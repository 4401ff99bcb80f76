package queue

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
)

// maxEntry bounds what is read of one entry.
const maxEntry = 8 << 20

// notSealed is the reason on an entry that nobody vouches for.
const notSealed = "not sealed: written by an earlier release, or without the fleet's key"

// errKey is what a program without the fleet's key gets when it would write state.
var errKey = errors.New("only a program with the fleet's key can change tasks")

// sealed is a task as it is stored: the signature of the fleet's key, then the text
// that it signs, which holds the id, the attempt, the branch and the checks.
func sealed(t Task, key ed25519.PrivateKey) ([]byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, errKey
	}
	text := jsonx.MustMarshal(t)
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(key, sealText(text)))
	return append([]byte(signature+"\n"), text...), nil
}

func sealText(text []byte) []byte { return append([]byte("coder fleet task\n"), text...) }

// read reads the entry of task id. An entry that is damaged, or whose seal is wrong,
// is [Broken] and says why.
func (q *Queue) read(id string, value []byte, at time.Time) Task {
	t, err := q.unseal(id, value)
	if err != nil {
		return broken(id, err, at)
	}
	return t
}

func broken(id string, err error, at time.Time) Task {
	err = message.Errorf("skipped this entry: %w", err)
	return Task{ID: id, Status: Broken, Reason: err.Error(), Created: at.UTC(), Updated: at.UTC()}
}

func (q *Queue) unseal(id string, value []byte) (t Task, err error) {
	if len(value) > maxEntry {
		return t, message.Errorf("too large: %d bytes", len(value))
	}
	signature, text, isSealed := bytes.Cut(value, []byte("\n"))
	if bytes.HasPrefix(value, []byte("{")) {
		isSealed, text = false, value
	}
	if isSealed {
		sum, err := base64.StdEncoding.DecodeString(string(signature))
		key := q.Settings.SealKey
		if err != nil || len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, sealText(text), sum) {
			return t, errors.New("the seal is not the fleet's")
		}
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return t, errors.New("not a task")
	}
	if t.ID != id || !ValidTask(id) {
		return t, errors.New("names another task")
	}
	if !slices.Contains(Statuses, t.Status) || t.Status == Broken {
		return t, errors.New("unknown status")
	}
	if t.Result != nil && t.Result.Branch != "" && t.Result.Branch != Branch(id) {
		return t, errors.New("the branch belongs to another task")
	}
	if !isSealed {
		if !t.Status.Ended() {
			return t, errors.New(notSealed)
		}
		t.Unsealed, t.Reason = true, notSealed
		if t.Result != nil {
			t.Result.Verified = false
		}
	}
	return t, nil
}

// sealOld gives tasks of an earlier release that have not ended a seal, so that they
// go on. What has ended stays without one.
func (q *Queue) sealOld(ctx context.Context) error {
	for old, err := range q.entries(ctx, "task") {
		if err != nil {
			return err
		}
		var t Task
		id := old.key
		if json.Unmarshal(old.value, &t) != nil || t.ID != id || t.Status.Ended() {
			continue
		}
		e, err := q.tasks.Get(ctx, id)
		if err != nil {
			return message.Errorf("seal task %s: %w", id, err)
		}
		value, err := sealed(t, q.key)
		if err == nil {
			_, err = q.tasks.Update(ctx, id, value, e.Revision())
		}
		if err != nil {
			return message.Errorf("seal task %s: %w", id, err)
		}
	}
	return nil
}

// ValidTask reports whether a task can have an id: it names subjects, a folder and a
// branch.
func ValidTask(id string) bool { return ValidName(id) && id[0] != '-' }

// Branch is the only branch that a task's result may be.
func Branch(id string) string { return "coder/" + id }
