import Foundation
import Testing
import WeatherSpotsKit

@testable import WebDriver

/// The weather of the present hour on the list and the map.
@Suite(.needsBrowser, .serialized, .timeLimit(.minutes(5))) struct PageHoursTests {
  @Test func arrowsPointWhereTheTextSaysThatItComesFrom() async throws {
    try await ServedPage.running { page, browser in
      // The tip of the arrow is at (0, 7) before it is turned; it points away from where wind and waves come from.
      let heading = """
        const from = (path) => {
          const { c, d } = path.transform.baseVal.consolidate().matrix;
          return (Math.atan2(c, -d) * 180 / Math.PI + 540) % 360;
        };
        """
      let signs = try await browser.script(
        """
        return (async () => {
          \(heading)
          const { arrow } = await import('/signs.js');
          const { compass } = await import('/words.js');
          return [0, 45, 90, 135, 180, 225, 270, 315].map((degrees) => {
            const sign = arrow(degrees);
            document.body.append(sign);
            const found = [Math.round(from(sign.firstChild)) % 360, compass(degrees), compass(degrees - 360)];
            sign.remove();
            return found;
          });
        })();
        """
      ).array.map { $0.array }
      #expect(signs.map { $0[0].number } == [0, 45, 90, 135, 180, 225, 270, 315])
      #expect(signs.map { $0[1].text } == ["N", "NE", "E", "SE", "S", "SW", "W", "NW"])
      #expect(signs.map { $0[1].text } == signs.map { $0[2].text })
      try await browser.openSpot("Brest")
      _ = try await browser.script("for (const table of document.querySelectorAll('figure summary')) table.click()")
      let found = try await browser.script(
        """
        return (async () => {
          \(heading)
          const { compass } = await import('/words.js');
          const texts = [...document.querySelectorAll('.weather span, #spot dd')]
            .filter((each) => / from /.test(each.textContent) && each.querySelector('path')?.getAttribute('transform').startsWith('rotate'))
            .map((each) => [/ from ([NESW]+)/.exec(each.textContent)[1], compass(from(each.querySelector('path')))]);
          const charts = ['wind', 'waves'].flatMap((name) => {
            const figure = document.querySelector(`figure.chart-${name}`);
            const rows = [...figure.querySelectorAll('tr')].slice(1);
            const column = [...figure.querySelectorAll('th[scope=col]')].findIndex((cell) => cell.textContent === 'from');
            const hour = (figure.querySelector('.chart-stage').clientWidth - 44) / rows.length;
            return [...figure.querySelectorAll('.chart-stage .chart-arrow')].map((path) => {
              const index = Math.round((path.transform.baseVal.getItem(0).matrix.e - 49) / hour);
              return [rows[index].children[column].textContent, compass(from(path))];
            });
          });
          return [texts, charts];
        })();
        """
      ).array.map { $0.array.map { $0.array.compactMap(\.text) } }
      #expect(found.count == 2 && found[0].count > 5 && found[1].count > 20, "\(found.map(\.count))")
      #expect(Set(found[1].map { $0[0] }).count > 4)
      for pair in found.joined() { #expect(pair[0] == pair[1]) }
    }
  }
}
