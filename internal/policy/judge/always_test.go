package judge_test

import (
	"strings"
	"testing"

	"coder/internal/policy"
	"coder/internal/policy/judge"
	"coder/internal/policy/rule"
)

// deeds are commands, and below each what saying always to it must not allow.
const deeds = `
tar tf a.tar
	tar xf a.tar --to-command=./evil
	tar tf a.tar --to-command=./evil
	tar -xf a.tar
	tar tf a.tar -I ./evil
	tar tf a.tar --checkpoint-action=exec=./evil
	tar xf a.tar
tar -tvf a.tar
	tar -xf a.tar --to-command=./evil
	tar -tf a.tar --use-compress-program=./evil
	tar -tf a.tar -F ./evil
	tar -cf a.tar .
tar --list -f a.tar
	tar --extract -f a.tar
	tar --list -f a.tar --rsh-command=./evil
	tar --get --to-command ./evil -f a.tar
tar xf a.tar
	tar xf a.tar --to-command=./evil
	tar xf b.tar
	tar xPf a.tar
	tar xf a.tar -C /
tar cf a.tar src
	tar cf a.tar src --checkpoint=1 --checkpoint-action=exec=./evil
	tar cf a.tar /etc
unzip -l a.zip
	unzip a.zip
	unzip -o a.zip -d /
unzip a.zip
	unzip -o a.zip
	unzip b.zip
ar t a.a
	ar x a.a
	ar r a.a b.o
sed -n 1p a
	sed -i s/a/b/ a
	sed -n 1e a
	sed -n 'w b' a
	sed 's/a/b/e' a
sed -i s/a/b/ a.go
	sed -i s/a/b/e a.go
	sed -i s/a/c/ b.go
find . -name a
	find . -delete
	find . -exec ./evil {} ;
	find . -execdir ./evil ;
	find . -ok ./evil ;
	find . -fprintf b x
git log
	git log --output=a
	git log -p --ext-diff
	git -c core.pager=./evil log
git diff
	git diff --output=a
	git diff --ext-diff
git fetch origin
	git fetch --upload-pack=./evil origin
	git fetch ext::./evil
	git fetch evil
git pull
	git pull --upload-pack=./evil
	git pull evil
git push origin main
	git push --receive-pack=./evil origin main
	git push --force origin main
	git push evil main
git grep x
	git grep -O./evil x
	git grep --open-files-in-pager=./evil x
git rebase main
	git rebase -x ./evil main
	git rebase --exec=./evil main
git commit -m x
	git commit -m x --amend
	git -c core.hooksPath=evil commit -m x
git checkout main
	git checkout -f other
	git checkout -- .
sort a
	sort -o a b
	sort --output=a b
	sort --compress-program=./evil a
awk '{print}' a
	awk 'BEGIN{system("./evil")}'
	awk '{print > "b"}' a
	awk -f evil a
	awk '{print | "./evil"}' a
jar tf a.jar
	jar xf a.jar
	jar uf a.jar x
zip a.zip b
	zip a.zip b -T --unzip-command=./evil
	zip a.zip b -T -TT ./evil
rsync -a src dst
	rsync -e ./evil -a src host:
	rsync -a --rsh=./evil src dst
	rsync -a --delete src dst
ssh host ls
	ssh -o ProxyCommand=./evil host ls
	ssh other ls
	ssh host rm a
make -n
	make SHELL=./evil
	make
	make -n SHELL=./evil
	make -n -f evil
	make -n --eval=x
make build
	make build SHELL=./evil
	make -f evil build
	make evil
	make --eval=x build
	make -C evil build
go test ./...
	go test -run -n -exec ./evil
	go test -n -exec ./evil
	go test -exec ./evil ./...
	go test -toolexec=./evil
	go test -vettool=./evil
	go test -o /bin/x
	go run ./evil
go vet ./...
	go vet -vettool=./evil ./...
	go test ./...
go build ./...
	go build -toolexec ./evil
	go build -o ../x
	go build -ldflags=-extld=./evil ./...
	go build -overlay=x ./...
cargo test
	cargo test --config build.rustc-wrapper='./evil'
	cargo --config x test
	cargo +evil test
	cargo test --manifest-path=evil/Cargo.toml
	cargo test --target-dir=/x
npm test
	npm test --script-shell=./evil
	npm --script-shell=./evil test
	npm test --prefix evil
	npm exec evil
	npm test -- x
npm run lint
	npm run evil
	npm run lint --userconfig=evil
pytest
	pytest -p evil
	pytest -c evil
	pytest --rootdir=/x
	pytest -o python_files=evil
	pytest --override-ini=x
mvn test
	mvn test -f evil
	mvn exec:exec
	mvn test -Dexec=evil
gradle test
	gradle -I evil test
	gradle test -b evil
docker compose up
	docker compose -f evil up
	docker compose --env-file evil up
docker build .
	docker build evil
	docker build -f evil .
curl -s localhost:8080/a
	curl -s localhost:8080/a -o b
	curl -K evil localhost:8080
	curl -s localhost:8081/a
	curl -d x localhost:8080
eslint src
	eslint --fix src
	eslint src --fix
	eslint --rulesdir evil src
	eslint -c evil src
	eslint --plugin evil src
	eslint -f ./evil src
prettier -w src
	prettier --plugin=./evil -w src
	prettier --config evil -w src
jest
	jest --config=evil
	jest --globalSetup=./evil
	jest --reporters=./evil
	jest --rootDir=evil
ruff check
	ruff check --config evil
	ruff check --fix
	ruff format
mypy src
	mypy --config-file evil src
	mypy --python-executable ./evil src
	mypy --install-types src
kubectl get pods
	kubectl get pods --kubeconfig=evil
	kubectl delete pod x
	kubectl get secrets
terraform plan
	terraform apply
	terraform plan -out=x
	terraform -chdir=evil plan
mkdir a
	mkdir /x
	mkdir -m 777 a
	mkdir .git/hooks
cp a b
	cp -r evil .git
	cp a ../b
	cp a .git/hooks/x
	cp -t /x a
touch a
	touch /x
	touch .git/config
	touch -r a b
python x.py
	python y.py
	python -c x
	python x.py y
node x.js
	node -e 1
	node -r ./evil x.js
xargs -n1 echo
	xargs -n1 ./evil
	xargs ./evil
perl -ne print a
	perl -e 'system x'
	perl -i -pe s/a/b/ a
tee a
	tee b
	tee -a .git/config
openssl version
	openssl enc -in a -out b
	openssl req -config evil -engine ./evil
gofmt -l .
	gofmt -w .
	gofmt -l -w .
	gofmt -cpuprofile=/x .
	gofmt -l ../x
gofmt -d a.go
	gofmt -d -w a.go
black --check .
	black .
	black --check --config evil .
prettier --check .
	prettier --check --write .
	prettier -w .
go vet -n
	go vet
cp -n a b
	cp a b
tsc --noEmit
	tsc
jest src
	jest -u src
`

// TestAlwaysForOneDeedAllowsNoOther: what a person said "always" to, in whatever scope,
// never lets pass a line of the same program that runs, writes or sends more.
func TestAlwaysForOneDeedAllowsNoOther(t *testing.T) {
	var said string
	for line := range strings.Lines(strings.TrimPrefix(deeds, "\n")) {
		other, isOther := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		if !isOther {
			said = other
			continue
		}
		if o := verdict(t, newJudge(t, "build", nil), run(other)); o.Verdict == policy.Allow {
			t.Errorf("%q is allowed by itself", other)
		}
		for _, scope := range []policy.Scope{policy.ThisSession, policy.ThisProject} {
			j := newJudge(t, "build", nil)
			m, err := j.OpenMemory(t.TempDir(), "", nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = m.Add(t.Context(), run(said), scope) // some are asked about every time
			offers, _ := m.Offers(run(said))
			var written []rule.Spec
			for _, o := range offers {
				specs, err := rule.ParseSpecs(strings.Join(o.Rules, ","))
				if err != nil {
					t.Fatal(err)
				}
				written = append(written, specs...)
			}
			for name, j := range map[string]*judge.Judge{"always": j, "its rules": j.WithAllowed(written)} {
				if o := verdict(t, j, run(other)); o.Verdict == policy.Allow {
					t.Errorf("%s, said of %q, allows %q: %v", name, said, other, offers)
				}
			}
		}
	}
}
