/// Files of the folder `Page/`, compiled into the program, by their URL paths.
enum PageContents {
  static let all: [String: [UInt8]] = [
    "/": PackageResources.index_html,
    "/api.js": PackageResources.api_js,
    "/app.js": PackageResources.app_js,
    "/charts/charts.js": PackageResources.charts_js,
    "/charts/figure.js": PackageResources.figure_js,
    "/dom.js": PackageResources.dom_js,
    "/editor.js": PackageResources.editor_js,
    "/edits.js": PackageResources.edits_js,
    "/hours.js": PackageResources.hours_js,
    "/icon.svg": PackageResources.icon_svg,
    "/map/land.json": PackageResources.land_json,
    "/map/map.js": PackageResources.map_js,
    "/signs.js": PackageResources.signs_js,
    "/spot.js": PackageResources.spot_js,
    "/spots.js": PackageResources.spots_js,
    "/style.css": PackageResources.style_css,
    "/sw.js": PackageResources.sw_js,
    "/words.js": PackageResources.words_js,
  ]
}
