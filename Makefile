# The door of the project: each job does its own set-up. `make` alone lists them.
.PHONY: help demo demo-sync page test test-all times smoke torture power-cuts system-calls soak sanitize fuzz mutants fault-sites darwin-check manual lint api bench instructions docs server

help:
	@echo 'make demo     stores, finds, kills, reopens and forecasts real spots, with every step shown; two minutes'
	@echo 'make demo-sync  lets two devices and a larder-server sync, with every step shown; builds the server'
	@echo 'make page     shows the page of weather-spots, with real spots and their weather, at the address that it prints'
	@echo 'make test     builds and tests all that needs no server: the library, the guides, the tool and the example'
	@echo 'make test-all takes the server, the page, benchmarks, fuzzing inputs, the API, the documentation and release builds besides'
	@echo 'make times    prints L, the processor time of a clean build of Larder, and the time of each step of the last tests in L'
	@echo 'make server   builds the server and runs its tests alone'
	@echo 'make smoke    calls every public entry of the library once and runs the demo, built as releases are'
	@echo 'make torture  takes the full counts of all random tests, optimised, and more; over an hour; ARGUMENTS="tests fuzz" runs a part'
	@echo 'make power-cuts  cuts the power of real ext4 disks under stores and their peers; needs root'
	@echo 'make system-calls  fails each system call of a process that writes, or kills it there; needs strace'
	@echo 'make soak     uses each object a great many times and fails on growth; MINUTES=30 goes on in rounds'
	@echo 'make sanitize runs the tests under ThreadSanitizer, then AddressSanitizer'
	@echo 'make fuzz     fuzzes what reads bytes from outside; ARGUMENTS="journal --seconds 600" runs a part'
	@echo 'make mutants  breaks the library in 181 places, one at a time, and shows that the tests notice; takes hours'
	@echo 'make fault-sites  renews Docs/Reliability/FaultSites.md, the calls of the file seam that tests fail'
	@echo 'make darwin-check  compiles the packages for macOS and iOS on Linux, against a stand-in for their SDK; minutes'
	@echo 'make manual   makes the manual pages of the tool and the example'
	@echo 'make api      renews Docs/API, the list of public declarations that make test compares'
	@echo 'make lint     checks formatting, words, rooms, guides and house rules; needs no build'
	@echo 'make bench    measures everything in release and renews Docs/Benchmarks.md; ARGUMENTS="run save --quick" runs a part'
	@echo 'make instructions  counts the instructions of single operations, and compares them with the last ones'
	@echo 'make docs     makes the documentation in .build-docs/site'

demo:
	@Scripts/set-up.sh
	@Examples/WeatherSpots/demo.sh

demo-sync:
	@Scripts/set-up.sh server
	@Examples/WeatherSpots/demo-sync.sh

page:
	@Scripts/set-up.sh page
	@Examples/WeatherSpotsPage/page.sh

test:
	@Scripts/set-up.sh
	@Scripts/test.sh

test-all:
	@Scripts/set-up.sh server
	@Scripts/test.sh all

times:
	@Scripts/set-up.sh
	@Scripts/Times/times.sh $(ARGUMENTS)

server:
	@Scripts/server.sh $(ARGUMENTS)

smoke:
	@Scripts/set-up.sh
	@Scripts/smoke.sh

torture:
	@Scripts/set-up.sh
	@Scripts/Torture/torture.sh $(ARGUMENTS)

power-cuts:
	@Scripts/set-up.sh
	@Scripts/Torture/power-cuts.sh $(ARGUMENTS)

system-calls:
	@Scripts/set-up.sh
	@Scripts/Torture/system-calls.sh $(ARGUMENTS)

soak:
	@Scripts/set-up.sh
	@Scripts/Torture/soak.sh $(MINUTES)

sanitize:
	@Scripts/set-up.sh
	@Scripts/Torture/sanitize.sh thread
	@Scripts/Torture/sanitize.sh address

fuzz:
	@Scripts/set-up.sh
	@Scripts/Torture/fuzz.sh $(ARGUMENTS)

mutants:
	@Scripts/set-up.sh
	@Scripts/Torture/mutants.sh $(ARGUMENTS)

fault-sites:
	@Scripts/set-up.sh
	@Scripts/Torture/fault-sites.sh

darwin-check:
	@Scripts/set-up.sh
	@Scripts/darwin-check/check.sh $(ARGUMENTS)

manual:
	@Scripts/set-up.sh
	@Scripts/manual.sh

api:
	@Scripts/set-up.sh
	@Scripts/api.sh --renew

lint:
	@Scripts/lint.sh

bench:
	@Scripts/set-up.sh
	@Scripts/bench.sh $(ARGUMENTS)

instructions:
	@Scripts/set-up.sh
	@Scripts/instructions.sh $(ARGUMENTS)

docs:
	@Scripts/set-up.sh
	@Scripts/docs.sh
