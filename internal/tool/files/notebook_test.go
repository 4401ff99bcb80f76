package files_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// jupyter is a notebook as Jupyter writes one.
const jupyter = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aaaa",
   "metadata": {
    "tags": []
   },
   "source": [
    "# Título <b>\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "bbbb",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n"
     ]
    }
   ],
   "source": [
    "print(1)"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {
   "name": "python3"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func TestACellIsReplaced(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/n.ipynb", jupyter)
	o := must(t, tools, "notebook_edit", "path", "n.ipynb", "cell", "bbbb", "source", "print(2)\nprint(\"<3>\")")
	want := strings.NewReplacer(`"execution_count": 3`, `"execution_count": null`, `"outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n"
     ]
    }
   ]`, `"outputs": []`, `    "print(1)"`, `    "print(2)\n",
    "print(\"<3>\")"`).Replace(jupyter)
	if got := get(t, dir+"/n.ipynb"); got != want {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(o.Diff, "-print(1)") || !strings.Contains(o.Diff, "+print(2)") || strings.Contains(o.Diff, "outputs") {
		t.Errorf("diff %s", o.Diff)
	}
	must(t, tools, "notebook_edit", "notebook_path", "n.ipynb", "cell_number", 0, "new_source", "x = 1", "cell_type", "code", "edit_mode", "replace")
	if got := get(t, dir+"/n.ipynb"); !strings.Contains(got, "\"cell_type\": \"code\",\n   \"id\": \"aaaa\",\n   \"metadata\": {\n    \"tags\": []\n   },\n   \"source\": [\n    \"x = 1\"\n   ],\n   \"execution_count\": null,\n   \"outputs\": []\n  },") {
		t.Errorf("got %s", got)
	}
	same := get(t, dir+"/n.ipynb")
	must(t, tools, "notebook_edit", "path", "n.ipynb", "cell", "1", "source", "x = 1")
	if get(t, dir+"/n.ipynb") != same {
		t.Error("the same source changed the file")
	}
}

func TestCellsAreInsertedAndDeleted(t *testing.T) {
	for name, text := range map[string]string{"lines": jupyter, "one line": `{"cells": [{"cell_type": "code", "source": "a", "metadata": {}, "outputs": [], "execution_count": 1}, {"cell_type": "raw", "source": [], "metadata": {}}], "nbformat": 4, "nbformat_minor": 2}`} {
		tools, dir := open(t)
		put(t, dir+"/n.ipynb", text)
		sources := func() string {
			var nb struct {
				Cells []struct {
					ID     string
					Source any
				}
			}
			if err := json.Unmarshal([]byte(get(t, dir+"/n.ipynb")), &nb); err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, c := range nb.Cells {
				if (c.ID != "") != (name == "lines") {
					t.Errorf("%s: id %q", name, c.ID)
				}
				s, _ := json.Marshal(c.Source)
				all = append(all, string(s))
			}
			return strings.Join(all, " ")
		}
		was := sources()
		edit := func(pairs ...any) { must(t, tools, "notebook_edit", append([]any{"path", "n.ipynb"}, pairs...)...) }
		edit("mode", "insert", "source", "top", "type", "markdown")
		edit("mode", "insert", "cell", "3", "source", "end\n")
		if got := sources(); got != `["top"] `+was+` ["end\n"]` {
			t.Errorf("%s: %s", name, got)
		}
		edit("mode", "delete", "cell", "4")
		edit("mode", "delete", "cell", "1")
		if got := get(t, dir+"/n.ipynb"); got != text {
			t.Errorf("%s: not as before: %s", name, got)
		}
		edit("mode", "delete", "cell", "1")
		edit("mode", "delete", "cell", "1")
		edit("mode", "insert", "source", "only")
		if got := sources(); got != `["only"]` {
			t.Errorf("%s: %s", name, got)
		}
		refused(t, tools, "notebook_edit", []any{"path", "n.ipynb", "cell", "7", "source", "x"}, "unknown cell", "1 to 1")
	}
	tools, dir := open(t)
	put(t, dir+"/old.ipynb", `{"worksheets": [], "nbformat": 3}`)
	put(t, dir+"/bad.ipynb", `{`)
	refused(t, tools, "notebook_edit", []any{"path", "old.ipynb", "cell", "1"}, "format 3")
	refused(t, tools, "notebook_edit", []any{"path", "bad.ipynb", "cell", "1"}, "malformed")
	refused(t, tools, "notebook_edit", []any{"path", "none.ipynb", "cell", "1"}, "does not exist")
}
