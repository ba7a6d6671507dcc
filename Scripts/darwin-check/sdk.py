#!/usr/bin/env python3
"""Makes the stand-in for Apple's SDK that check.sh compiles against. Usage: sdk.py FOLDER macos|ios|tvos|watchos

The stand-in has three sources, and none of them is kept in this repository: the C headers of macOS from the PyPI package ziglang, the module
interfaces of the toolchain, and stubs/, which holds what is used of CryptoKit, Network, SwiftUI and others. README.md says how near each is to
Apple's. A module that is there already is kept while nothing that it was made of has changed.
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zipfile

import darwin

HERE = pathlib.Path(__file__).resolve().parent
# The target of each platform, and the name of its files in a .swiftmodule folder.
PLATFORMS = {
    'macos': ('x86_64-apple-macos15.0', 'x86_64-apple-macos'),
    'ios': ('x86_64-apple-ios18.0-simulator', 'x86_64-apple-ios-simulator'),
    'tvos': ('x86_64-apple-tvos18.0-simulator', 'x86_64-apple-tvos-simulator'),
    'watchos': ('x86_64-apple-watchos11.0-simulator', 'x86_64-apple-watchos-simulator'),
}
ZIGLANG = 'ziglang==0.17.1'
HEADER = '''// swift-interface-format-version: 1.0
// swift-compiler-version: {version}
// swift-module-flags: -target {target} -disable-objc-interop -enable-library-evolution -module-link-name {name} -swift-version 5 {features} -module-name {name}
'''
# What the modules of the toolchain were compiled with, as their interfaces say.
FEATURES = ' '.join(
    f'-enable-experimental-feature {name}'
    for name in ('Lifetimes', 'LifetimeDependence', 'NonescapableTypes', 'AddressableParameters'))


class SDK:
    def __init__(self, folder, platform):
        self.folder = pathlib.Path(folder).resolve()
        self.target, self.file = PLATFORMS[platform]
        self.work = self.folder / '.work' / platform
        frontend = pathlib.Path(shutil.which('swift-frontend')).resolve()
        self.usr = frontend.parent.parent
        self.linux = self.usr / 'lib/swift/linux'
        self.host = next((self.linux / 'Swift.swiftmodule').glob('*.swiftmodule')).stem
        self.version = subprocess.run([frontend, '--version'], capture_output=True, text=True).stdout.splitlines()[0]
        # A number of everything that was made so far: a module is made again when one before it was.
        self.state = hashlib.sha256((self.version + self.target).encode())
        for part in ('usr/include', 'usr/lib/swift', 'resources', f'.work/{platform}'):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        for name in ('shims', 'clang', 'apinotes'):
            link = self.folder / 'resources' / name
            if not link.is_symlink():
                link.symlink_to(self.usr / 'lib/swift' / name)

    # The C library.

    def headers(self):
        """Unpacks the headers of macOS, and puts them into one module."""
        include = self.folder / 'usr/include'
        # The wheel has no header for extended attributes. A folder that is there already gets it, too.
        (include / 'sys').mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / 'stubs/sys/xattr.h', include / 'sys/xattr.h')
        if (include / 'module.modulemap').exists():
            return
        wheels = self.folder / '.work/wheel'
        if not list(wheels.glob('*.whl')):
            subprocess.check_call([sys.executable, '-m', 'pip', 'download', '-q', '--no-deps', '-d', wheels, ZIGLANG])
        wheel = next(wheels.glob('*.whl'))
        base = 'ziglang/lib/libc/include/any-darwin-any/'
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(base) and not name.endswith('/'):
                    path = include / name[len(base):]
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(archive.read(name))
        for name in ('sqlite3.h', 'sqlite3ext.h'):
            shutil.copy(f'/usr/include/{name}', include / name)
        found = [name for name in darwin.HEADERS if (include / name).exists()]
        lines = ''.join(f'  header "{name}"\n' for name in found)
        (include / 'module.modulemap').write_text(f'module Darwin [system] [extern_c] {{\n{lines}  export *\n}}\n')
        print(f'headers: {wheel.name}; absent: {sorted(set(darwin.HEADERS) - set(found))}')

    # Modules of Swift.

    def toolchain(self, name, source=None, flags=()):
        """Makes a module of the interface that the toolchain has of it for Linux."""
        folder = self.linux / f'{source or name}.swiftmodule'
        private = folder / f'{self.host}.private.swiftinterface'
        text = (private if private.exists() else folder / f'{self.host}.swiftinterface').read_text()
        # The flags of the compiler are in the comments at the top.
        flags_end = text.index('\n', text.index('// swift-module-flags'))
        head = text[:flags_end].replace(self.host, self.target).replace('-target-min-inlining-version min', '').replace('-static', '')
        self.make(name, darwin.of_interface(name, head + text[flags_end:], self.folder / 'usr/include'), flags)

    def printed(self, name, sources, imports):
        """Makes a module of what the toolchain prints of its own modules; a declaration that cannot be read back is dropped."""
        texts = []
        for source in sources:
            result = subprocess.run(
                [self.usr / 'bin/swift-synthesize-interface', '-module-name', source, '-target', self.host, '-sdk', '/',
                 '-resource-dir', self.usr / 'lib/swift'], capture_output=True, text=True)
            texts.append(result.stdout)
        head = self.header(name) + imports
        self.make(name, head + darwin.of_printed(name, '\n'.join(texts)), tries=10)

    def stub(self, name):
        self.make(name, self.header(name) + (HERE / f'stubs/{name}.swiftinterface').read_text())

    def header(self, name):
        return HEADER.format(version=self.version, target=self.target, name=name, features=FEATURES)

    def make(self, name, text, flags=(), tries=1):
        self.state.update(text.encode())
        folder = self.folder / f'usr/lib/swift/{name}.swiftmodule'
        folder.mkdir(exist_ok=True)
        module, stamp = folder / f'{self.file}.swiftmodule', self.work / f'{name}.stamp'
        if module.exists() and stamp.exists() and stamp.read_text() == self.state.hexdigest():
            return
        began, dropped = time.time(), []
        for _ in range(tries):
            errors = self.compile(name, text, module, flags)
            if not errors or tries == 1:
                break
            text, gone = without(text, errors)
            dropped += gone
            if not gone:
                break
        if errors:
            sys.exit('\n'.join([f'sdk.py: {name} does not compile for {self.target}:'] + errors[:20]))
        stamp.write_text(self.state.hexdigest())
        (self.work / f'{name}.dropped').write_text('\n'.join(dropped))
        print(f'{name}: {time.time() - began:.0f} s' + (f', {len(dropped)} declarations dropped' if dropped else ''), flush=True)

    def compile(self, name, text, module, flags):
        source = self.work / f'{name}.swiftinterface'
        source.write_text(text)
        module.unlink(missing_ok=True)
        result = subprocess.run(
            [self.usr / 'bin/swift-frontend', '-frontend', '-compile-module-from-interface', source, *flags, '-o', module,
             '-target', self.target, '-module-name', name, '-sdk', self.folder, '-I', self.folder / 'usr/lib/swift',
             '-resource-dir', self.folder / 'resources', '-plugin-path', self.usr / 'lib/swift/host/plugins',
             '-module-cache-path', self.work / 'cache', '-disable-objc-interop', '-disable-availability-checking'],
            capture_output=True, text=True)
        errors = [line for line in result.stderr.splitlines() if re.match(r'[/<].*error: ', line)]
        if not errors and not module.exists():
            errors = [result.stderr[-600:]]
        return errors


def without(text, errors):
    """Returns the text without the declarations that the errors name, and those declarations."""
    lines, gone, dropped = text.split('\n'), set(), []
    for error in errors:
        match = re.match(r'.*swiftinterface:(\d+):\d+: error: (.*)', error)
        start = int(match[1]) - 1 if match else 0
        if start < 4 or start in gone:
            continue
        dropped.append(f'{lines[start].strip()}\n    {match[2]}')
        # To the end of its braces.
        end, depth = start, 0
        while True:
            depth += lines[end].count('{') - lines[end].count('}')
            gone.add(end)
            end += 1
            if depth <= 0 or end == len(lines):
                break
        # The attributes above.
        above = start - 1
        while above > 3 and re.fullmatch(r'\s*(@[\w.]+(\(.*\))?\s*)*', lines[above]):
            gone.add(above)
            above -= 1
    return '\n'.join('' if number in gone else line for number, line in enumerate(lines)), dropped


def main():
    sdk = SDK(sys.argv[1], sys.argv[2])
    sdk.headers()
    for name in ('Swift', 'SwiftOnoneSupport', '_Concurrency'):
        sdk.toolchain(name, flags=['-parse-stdlib'])
    sdk.toolchain('Darwin', 'Glibc')
    for name in ('_Builtin_float', '_RegexParser', '_StringProcessing', 'RegexBuilder', 'Synchronization', 'Observation'):
        sdk.toolchain(name)
    sdk.printed('Dispatch', ['Dispatch'], '@_exported import Darwin\nimport Swift\nimport _Concurrency\n')
    sdk.stub('ObjectiveC')
    # The macros of the toolchain write FoundationEssentials.Predicate, so the declarations are in a module of that name, as on Linux.
    sdk.printed(
        'FoundationEssentials', ['FoundationEssentials', 'FoundationInternationalization', 'Foundation', 'FoundationNetworking'],
        '@_exported import Darwin\n@_exported import Dispatch\n@_exported import ObjectiveC\nimport Swift\nimport _Concurrency\n'
        'import _StringProcessing\nimport Synchronization\n')
    # The compiler looks for the conversions behind `error as NSError` in the module Foundation.
    sdk.make(
        'Foundation', sdk.header('Foundation') + '@_exported import FoundationEssentials\nimport Swift\n'
        'public func _convertErrorToNSError(_ error: any Swift.Error) -> FoundationEssentials.NSError\n'
        'public func _convertNSErrorToError(_ error: FoundationEssentials.NSError?) -> any Swift.Error\n')
    for stub in sorted((HERE / 'stubs').glob('*.swiftinterface')):
        if stub.stem != 'ObjectiveC':
            sdk.stub(stub.stem)


main()
