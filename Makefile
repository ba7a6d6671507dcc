# The door of the project: each job does its own set-up. `make` alone lists them.
.PHONY: help demo test lint bench docs

help:
	@echo 'make demo   stores, reopens and forecasts real spots, with every step shown'
	@echo 'make test   builds everything and runs all tests of all packages'
	@echo 'make lint   checks formatting, documentation and house rules'
	@echo 'make bench  measures the backends in release; WORDS="save JSON" chooses scenarios'
	@echo 'make docs   makes the documentation in .build-docs/site'

demo:
	@Scripts/set-up.sh
	@Examples/WeatherSpots/demo.sh

test:
	@Scripts/set-up.sh
	@Scripts/test.sh

lint:
	@Scripts/lint.sh

bench:
	@Scripts/set-up.sh
	@swift run --package-path Benchmarks -c release larder-bench $(WORDS)

docs:
	@Scripts/set-up.sh
	@Scripts/docs.sh
