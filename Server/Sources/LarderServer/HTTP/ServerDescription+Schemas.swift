@_spi(Wire) internal import LarderWire

extension ServerDescription {
  /// JSON schemas of the messages.
  static let schemas = ##"""
    "Any":{},"Text":{"type":"string"},
    "Number":{"type":"integer",\##(range(.base))},
    "OptionalNumber":{"type":["integer","null"],\##(range(.stamp))},
    "Version":{"type":["integer","null"],\##(range(.version))},
    "Seq":{"type":"integer",\##(range(.seq))},
    "Name":\##(name(.id)),
    "Writer":\##(name(.writer)),
    "Record":{"type":"object","required":["in","id","rev"],"properties":{"in":{"$ref":"#/components/schemas/Name"},"id":{"$ref":"#/components/schemas/Name"},
     "rev":{"$ref":"#/components/schemas/Number"},"version":{"$ref":"#/components/schemas/Version"},
     "stamp":{"$ref":"#/components/schemas/Number"},"by":{"$ref":"#/components/schemas/Writer"},"value":{},"deleted":{"type":"boolean"}}},
    "PushedRecord":{"type":"object","required":["in","id","base"],"anyOf":[{"required":["value"]},
     {"required":["deleted"],"properties":{"deleted":{"const":true}}}],"properties":{"in":{"$ref":"#/components/schemas/Name"},
     "id":{"$ref":"#/components/schemas/Name"},"base":{"$ref":"#/components/schemas/Number"},
     "version":{"$ref":"#/components/schemas/Version"},"stamp":{"$ref":"#/components/schemas/OptionalNumber"},"value":{},
     "deleted":{"type":["boolean","null"]}}},
    "Push":{"type":"object","required":["device","seq","token","clock","groups"],"properties":{"history":\##(name(.history, isOptional: true)),
     "device":{"$ref":"#/components/schemas/Name"},"seq":{"$ref":"#/components/schemas/Seq"},
     "token":{"$ref":"#/components/schemas/Name"},"clock":{"$ref":"#/components/schemas/Number"},"groups":{"type":"array","items":{"type":"object","required":["records"],
     "properties":{"records":{"type":"array","items":{"$ref":"#/components/schemas/PushedRecord"}}}}}}},
    "Outcome":{"type":"object","properties":{"ok":{"$ref":"#/components/schemas/Number"},
     "conflict":{"type":"array","items":{"$ref":"#/components/schemas/Record"}},
     "rejected":{"type":"object","required":["code"],"properties":{"code":\##(words(.code)),"detail":\##(words(.detail))}}}},
    "Receipt":{"type":"object","required":["seq","token","outcomes"],"properties":{"seq":{"$ref":"#/components/schemas/Seq"},
     "token":{"$ref":"#/components/schemas/Name"},"outcomes":{"type":"array","items":{"$ref":"#/components/schemas/Outcome"}}}},
    "PushReply":{"allOf":[{"$ref":"#/components/schemas/Receipt"},{"type":"object","required":["history","now"],
     "properties":{"history":{"$ref":"#/components/schemas/Name"},"now":{"$ref":"#/components/schemas/Number"}}}]},
    "Changes":{"type":"object","required":["history","since","until","head","more","horizon","changes"],
     "properties":{"history":{"$ref":"#/components/schemas/Name"},"since":{"$ref":"#/components/schemas/Number"},
     "until":{"$ref":"#/components/schemas/Number"},"head":{"$ref":"#/components/schemas/Number"},"more":{"type":"boolean"},
     "horizon":{"$ref":"#/components/schemas/Number"},"total":{"$ref":"#/components/schemas/Number"},
     "last":{"$ref":"#/components/schemas/Receipt"},"changes":{"type":"array","items":{"$ref":"#/components/schemas/Record"}}}},
    "Scopes":{"type":"object","required":["scopes","history"],"properties":{"history":{"$ref":"#/components/schemas/Name"},"scopes":{"type":"array","items":{"type":"object",
     "required":["scope","access","head"],"properties":{"scope":{"type":"string"},"access":{"type":"string"},
     "head":{"$ref":"#/components/schemas/Number"}}}}}},
    "Problem":{"type":"object","required":["type","title","status"],"properties":{"type":{"type":"string"},"title":{"type":"string"},
     "status":{"type":"integer"},"detail":\##(words(.detail)),"horizon":{"$ref":"#/components/schemas/Number"},
     "history":{"$ref":"#/components/schemas/Name"},"last":{"$ref":"#/components/schemas/Number"},"minimum":{"type":"integer",\##(range(.minimum))},
     "most":{"$ref":"#/components/schemas/Number"}}}
    """##

  /// Returns the bound of a number.
  private static func range(_ field: WireField) -> String {
    guard case .number(let range) = field.bound else { return "" }
    return #""minimum":\#(range.lowerBound),"maximum":\#(range.upperBound)"#
  }

  /// Returns the form of a text that names something.
  private static func name(_ field: WireField, isOptional: Bool = false) -> String {
    guard case .text(let count) = field.bound else { return "{}" }
    return #"{"type":\#(isOptional ? #"["string","null"]"# : #""string""#),"minLength":\#(count.lowerBound),"#
      + #""maxLength":\#(count.upperBound),"pattern":"^[^\u0000]*$","description":"at most \#(count.upperBound) bytes in UTF-8"}"#
  }

  /// Returns the form of a text for people.
  private static func words(_ field: WireField) -> String {
    guard case .words(let most) = field.bound else { return "{}" }
    return #"{"type":"string","maxLength":\#(most),"description":"at most \#(most) bytes in UTF-8, without control characters"}"#
  }
}
