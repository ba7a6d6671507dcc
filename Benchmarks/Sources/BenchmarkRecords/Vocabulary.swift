/// 5,000 words of syllables; the word of rank r is drawn as often as 1 / r, as in a language.
package enum Vocabulary {
  package static let words: [String] = {
    let syllables = "ka ri mo ta ne su lo pi ha ve do gu ja wa ze bo fi le nu ro".split(separator: " ")
    return (0..<5_000).map { number in
      var (rest, word) = (number * 7_919 % 8_000, "")
      for _ in 0..<3 {
        word += syllables[rest % syllables.count]
        rest /= syllables.count
      }
      return word
    }
  }()

  private static let shares: [Double] = {
    var sum = 0.0
    return (1...words.count).map { rank in
      sum += 1 / Double(rank)
      return sum
    }
  }()

  static func word(_ numbers: inout SeededNumbers) -> String {
    let share = Double.random(in: 0..<(shares.last ?? 1), using: &numbers)
    var (low, high) = (0, shares.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if shares[middle] > share { high = middle } else { low = middle + 1 }
    }
    return words[low]
  }
}
