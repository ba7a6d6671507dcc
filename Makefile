# The door of the project: each job does its own set-up. `make` alone lists them.
.PHONY: help demo test smoke torture lint api bench instructions docs

help:
	@echo 'make demo     stores, reopens and forecasts real spots, with every step shown'
	@echo 'make test     builds everything and runs all tests of all packages'
	@echo 'make smoke    calls every public entry of the example once, built as releases are'
	@echo 'make torture  make test with full counts, in debug and in release; takes an hour or more'
	@echo 'make api      renews Docs/API, the list of public declarations that make test compares'
	@echo 'make lint     checks formatting, words, rooms, guides and house rules; needs no build'
	@echo 'make bench    measures everything in release and renews Docs/Benchmarks.md; ARGUMENTS="run save --quick" runs a part'
	@echo 'make instructions  counts the instructions of single operations, and compares them with the last ones'
	@echo 'make docs     makes the documentation in .build-docs/site'

demo:
	@Scripts/set-up.sh
	@Examples/WeatherSpots/demo.sh

test:
	@Scripts/set-up.sh
	@Scripts/test.sh

smoke:
	@Scripts/set-up.sh
	@Scripts/smoke.sh

torture:
	@Scripts/set-up.sh
	@LARDER_TORTURE=1 CONFIGURATION=debug Scripts/test.sh
	@LARDER_TORTURE=1 CONFIGURATION=release Scripts/test.sh

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
