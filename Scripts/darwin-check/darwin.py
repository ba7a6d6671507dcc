"""What differs between the modules of a toolchain for Linux and those of Apple's systems, and how a printed interface is read back."""
import re

HEADERS = '''arpa/inet.h copyfile.h crt_externs.h ctype.h dirent.h dlfcn.h errno.h execinfo.h fcntl.h fnmatch.h ftw.h fts.h getopt.h glob.h grp.h
ifaddrs.h langinfo.h libgen.h libproc.h locale.h mach/mach.h mach/mach_time.h malloc/malloc.h math.h net/if.h net/if_dl.h netdb.h netinet/in.h
netinet/tcp.h os/clock.h os/lock.h paths.h poll.h pthread.h pwd.h regex.h sched.h semaphore.h setjmp.h signal.h spawn.h stdio.h stdlib.h string.h
strings.h sys/attr.h sys/clonefile.h sys/event.h sys/file.h sys/ioctl.h sys/mman.h sys/mount.h sys/param.h sys/random.h sys/resource.h
sys/select.h sys/socket.h sys/stat.h sys/statvfs.h sys/sysctl.h sys/time.h sys/times.h sys/types.h sys/uio.h sys/un.h sys/utsname.h sys/wait.h
sys/xattr.h sysexits.h syslog.h termios.h time.h ulimit.h unistd.h utime.h uuid/uuid.h wchar.h wctype.h xlocale.h'''.split()

# Of Apple's overlay of the C library and not of Glibc's: macros that Swift does not import, as variables.
OVERLAY = '''
public var TIOCGWINSZ: Swift.UInt { get }
public var TIOCSWINSZ: Swift.UInt { get }
''' + ''.join(f'public var CLOCK_{name}: Darwin.clockid_t {{ get }}\n' for name in (
    'REALTIME', 'MONOTONIC', 'MONOTONIC_RAW', 'UPTIME_RAW', 'PROCESS_CPUTIME_ID', 'THREAD_CPUTIME_ID')) + ''.join(
    f'public var {name}: Swift.UnsafeMutablePointer<Darwin.FILE> {{ get set }}\n' for name in ('stdin', 'stdout', 'stderr'))
SIGNALS = '''public var SIG_DFL: Darwin.sig_t? { get }
public var SIG_IGN: Darwin.sig_t { get }
public var SIG_ERR: Darwin.sig_t { get }
'''

# Of Apple's Foundation alone, after its documentation.
FOUNDATION = '''
extension URL {
''' + ''.join(f'  public static var {name}Directory: URL {{ get }}\n' for name in (
    'application', 'applicationSupport', 'caches', 'desktop', 'documents', 'downloads', 'home', 'library', 'temporary')) + '''}
extension URLError : Error {
  public init(_ code: URLError.Code, userInfo: [String : Any] = [:])
  public var code: URLError.Code { get }
  public var errorCode: Int { get }
  public var userInfo: [String : Any] { get }
  public var failingURL: URL? { get }
  public var localizedDescription: String { get }
}
extension FileManager {
  public func containerURL(forSecurityApplicationGroupIdentifier groupIdentifier: String) -> URL?
}
'''
RANGE = '''public struct NSRange : Sendable, Hashable {
  public var location: Int { get set }
  public var length: Int { get set }
  public init(location: Int, length: Int)
  public init()
}
'''


def of_interface(name, text, include):
    """Adapts the interface of a module of the toolchain."""
    text = re.sub(r'^import Glibc$', 'import Darwin', text, flags=re.M)
    # A back-deployed body would be emitted into the client, and calls what Apple's library has.
    text = re.sub(r'@backDeployed\([^)]*\)\s*', '', text)
    # A lock of Linux asks for the thread. Apple's asks the kernel, behind the same interface.
    text = text.replace('_swift_stdlib_gettid()', 'UInt32(1)')
    return of_glibc(text, include) if name == 'Darwin' else text


def of_glibc(text, include):
    """Makes the overlay of Darwin of Glibc's: both are one source in Swift's repository, with conditions."""
    text = text.replace('-module-name Glibc', '-module-name Darwin').replace('swiftGlibc', 'swiftDarwin')
    text = text.replace('import SwiftOverlayShims\n', '')
    text = re.sub(r'\b(SwiftOverlayShims|SwiftGlibc|Glibc)\.', 'Darwin.', text)
    text = text.replace('@_exported import SwiftGlibc', '@_exported import Darwin')
    text = cut(text, 'public enum POSIXErrorCode', '@available(swift, deprecated: 4.2, renamed: "abs")')
    text = cut(text, 'public typealias sighandler_t', 'public typealias Semaphore', SIGNALS)
    text = without_declaration(text, r'public var environ')
    numbers = (include / 'sys/errno.h').read_text()
    names = sorted(set(re.findall(r'#define[ \t]+(E[A-Z0-9]+)[ \t]+\d+', numbers)) - {'ELAST'})
    cases = ''.join(f'  case {name}\n' for name in names)
    return text + OVERLAY + ('public enum POSIXErrorCode : Swift.Int32, Swift.Sendable {\n' + cases
                             + '  public init?(rawValue: Swift.Int32)\n  public var rawValue: Swift.Int32 { get }\n}\n')


def of_printed(name, text):
    """Turns an interface that is printed for people into one that the compiler reads."""
    text = '\n'.join(line for line in text.split('\n') if not re.match(r'\s*///|import |\s*$', line))
    words = r'(?:(?:@[\w.]+(?:\([^)\n]*\))?|\w+(?:\(\w+\))?) )*'
    text = re.sub(r'@inlinable ', '', text)
    text = re.sub(r'\b(?:private|internal|fileprivate)\(set\) ', '', text)
    text = re.sub(rf'^(\s*{words}let [^{{\n]*) \{{ get \}}$', r'\1', text, flags=re.M)
    # Without accessors, a property would be a stored one, and a subscript an error.
    text = re.sub(rf'^(\s*{words}(?:subscript\b[^{{\n]*|var [^{{\n=]*))$', r'\1 { get set }', text, flags=re.M)
    text = with_raw_values(text)
    if name == 'Dispatch':
        text = text.replace('dispatch_fd_t', 'Int32').replace('dispatch_time_t', 'UInt64')
        return text.replace('public class DispatchObject {', 'public class DispatchObject {\n  public init()')
    return of_foundation(text)


def with_raw_values(text):
    """Writes out the members that the compiler makes for enumerations with raw values, except when it reads an interface."""
    lines = text.split('\n')
    for number in range(len(lines) - 1, -1, -1):
        match = re.match(r'(\s*).*\benum \w+ : (U?Int(?:8|16|32|64)?|String|Character)\b.*\{$', lines[number])
        if not match:
            continue
        end = next(place for place in range(number + 1, len(lines)) if lines[place].startswith(match[1] + '}'))
        if not any('rawValue' in line for line in lines[number:end]):
            kind = match[2]
            lines[number + 1:number + 1] = [
                f'public typealias RawValue = {kind}', f'public init?(rawValue: {kind})', f'public var rawValue: {kind} {{ get }}']
    return '\n'.join(lines)


def of_foundation(text):
    # FoundationInternationalization has small types of its own, which come before Foundation's with the same names.
    for start in (r'public struct Measurement<UnitType> \{$', r'extension Measurement where UnitType : Dimension \{$',
                  r'public class Dimension \{$', r'public class UnitDuration : Dimension \{$',
                  r'public struct URLResourceKey \{$'):
        text = without_declaration(text, start)
    # NSObject is in the module ObjectiveC.
    for start in (r'open class NSObject\b.*\{$', r'public protocol NSObjectProtocol\b.*\{$', r'extension NSObject\b.*\{$'):
        while (shorter := without_declaration(text, start)) != text:
            text = shorter
    text = text.replace('public typealias NSRange\n', RANGE)
    text = with_full_names(text)
    # Printed without its attribute.
    text = re.sub(r'^(\s*)(public init<T, Value>\(_ value: Value, strategy: T\))', r'\1@_disfavoredOverload \2', text, flags=re.M)
    return with_open_codes(text) + FOUNDATION


def with_full_names(text):
    """Names the types of the standard library in full: the printing leaves the module out where a nested type has the same name."""
    declared = ''.join(rf'(?<!{word} )' for word in (
        'struct', 'class', 'enum', 'protocol', 'typealias', 'associatedtype', 'case', 'func', 'var', 'let', 'macro'))
    lines, end = text.split('\n'), None
    depth = 0
    for number, line in enumerate(lines):
        # Two types have parameters that are called Range and RangeExpression.
        is_generic = re.search(r'(struct |extension PredicateExpressions\.)(CollectionRangeSubscript|RangeExpressionContains)\b'
                               r'|build_\w+<(Wrapped, Range|RangeExpression, Element)>', line)
        if is_generic and end is None:
            end = depth
        depth += line.count('{') - line.count('}')
        if end is None:
            for name, module in (('Range', 'Swift'), ('ClosedRange', 'Swift'), ('KeyPath', 'Swift'), ('RangeExpression', 'Swift'),
                                 ('Sequence', 'Swift'), ('FormatStyle', 'FoundationEssentials'),
                                 ('ParseStrategy', 'FoundationEssentials'), ('ParseableFormatStyle', 'FoundationEssentials')):
                if name in line:
                    line = re.sub(rf'(?<![\w.@#`]){declared}{name}\b(?!:)(?!\s*\()', f'{module}.{name}', line)
            lines[number] = line
        else:
            line = line.replace('Range.Output == Range<', 'Range.Output == Swift.Range<')
            lines[number] = line.replace('RangeExpression.Output : RangeExpression', 'RangeExpression.Output : Swift.RangeExpression')
            if depth <= end:
                end = None
    # A parameter cannot have a name with a dot.
    text = re.sub(r'<Swift\.Range>\(', '<R>(', '\n'.join(lines))
    text = text.replace('lengthLimits: Swift.Range,', 'lengthLimits: R,')
    return text.replace('where Swift.Range : Swift.RangeExpression, Swift.Range.Bound', 'where R : Swift.RangeExpression, R.Bound')


def with_open_codes(text):
    """Makes URLError.Code a structure, as Apple's is: a switch over it needs a default."""
    start = text.index('public enum Code : Int, Sendable {', text.index('public struct URLError : Sendable {'))
    end = text.index('}\n', text.index('public var rawValue: Int { get }', start) + 40)
    code = re.sub(r'^(\s*)case (.+)$', r'\1public static var \2: URLError.Code { get }', text[start:end], flags=re.M)
    code = code.replace('public enum Code : Int, Sendable {', 'public struct Code : RawRepresentable, Hashable, Sendable {')
    return text[:start] + code.replace('public init?(rawValue: Int)', 'public init(rawValue: Int)') + text[end:]


def cut(text, start, end, replacement=''):
    place = text.index(start)
    return text[:place] + replacement + text[text.index(end, place):]


def without_declaration(text, start):
    """Removes the first declaration that begins so, to the end of its braces."""
    match = re.search(start, text, flags=re.M)
    if not match:
        return text
    place, depth = text.rfind('\n', 0, match.start()) + 1, 0
    end = place
    while True:
        line = text[end:text.index('\n', end) + 1]
        depth += line.count('{') - line.count('}')
        end += len(line)
        if depth <= 0:
            return text[:place] + text[end:]
