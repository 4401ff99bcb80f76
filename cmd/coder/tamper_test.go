package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/record/store/jsonl"

	"github.com/rogpeppe/go-internal/testscript"
)

// tamper writes the logs of a session anew with every OLD in them replaced, as
// somebody would who knows their form but has no key: tamper SESSION OLD NEW.
func tamper(ts *testscript.TestScript, _ bool, args []string) {
	found := false
	rewrite(ts, args[0], func(r event.Record) []event.Record {
		text := string(jsonx.MustMarshal(r.Event))
		changed := strings.ReplaceAll(text, args[1], args[2])
		found = found || changed != text
		e := reflect.New(reflect.TypeOf(r.Event))
		ts.Check(json.Unmarshal([]byte(changed), e.Interface()))
		r.Event = e.Elem().Interface().(event.Event)
		return []event.Record{r}
	})
	if !found {
		ts.Fatalf("%q is not in session %s", args[1], args[0])
	}
}

// drop leaves the records of a type out: drop SESSION TYPE.
func drop(ts *testscript.TestScript, _ bool, args []string) {
	rewrite(ts, args[0], func(r event.Record) []event.Record {
		if name, _ := event.WireName(r.Event); name == args[1] {
			return nil
		}
		return []event.Record{r}
	})
}

// graft puts the records of a type of another session at the end of one, seals
// and all: graft SESSION TYPE FROM.
func graft(ts *testscript.TestScript, _ bool, args []string) {
	var all, more []event.Record
	rewrite(ts, args[2], func(r event.Record) []event.Record {
		if name, _ := event.WireName(r.Event); name == args[1] {
			more = append(more, r)
		}
		return []event.Record{r}
	})
	rewrite(ts, args[0], func(r event.Record) []event.Record { all = append(all, r); return nil })
	for i := range more {
		more[i].Task = all[len(all)-1].Task
	}
	write(ts, args[0], append(all, more...))
}

func rewrite(ts *testscript.TestScript, session string, change func(event.Record) []event.Record) {
	old, err := readSession(ts.MkAbs("."), session)
	ts.Check(err)
	var all []event.Record
	for _, r := range old {
		all = append(all, change(r)...)
	}
	write(ts, session, all)
}

// write replaces the logs of a session.
func write(ts *testscript.TestScript, session string, all []event.Record) {
	dir := ts.MkAbs(".coder/log")
	ts.Check(os.RemoveAll(filepath.Join(dir, session)))
	store := jsonl.Open(dir, jsonl.Options{})
	release, err := store.Claim(context.Background(), session)
	ts.Check(err)
	for i, r := range all {
		r.Session, r.Seq = session, uint64(i+1)
		err = errors.Join(err, store.Append(context.Background(), uint64(i), r))
	}
	ts.Check(errors.Join(err, release()))
}
