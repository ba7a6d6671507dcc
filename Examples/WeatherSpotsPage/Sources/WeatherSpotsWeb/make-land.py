#!/usr/bin/env python3
"""Makes Page/map/land.json from land or country polygons of Natural Earth (public domain).

    python3 make-land.py land-110m.geojson > Page/map/land.json

Borders that two polygons share are dropped, so that only coasts remain: that alone halves the points, and the
coasts keep all that the source has.
Form: {"scale":100,"rings":[[x,y,dx,dy,dx,dy,…],…]}. A ring begins with a longitude and a latitude in units of
1/scale degree; each further pair is the difference to the point before it. The closing point is not repeated.
Inland seas are rings of the opposite direction: fill with the nonzero rule.
"""
import json
import sys

SCALE = 100
SPECK = 12  # a ring within a square of so many units is left out


def coasts(rings):
    """Returns closed rings of the edges that belong to one polygon only."""
    edges = {}
    for ring in rings:
        points = [(round(x * SCALE), round(y * SCALE)) for x, y, *_ in ring]
        for edge in zip(points, points[1:]):
            back = edge[::-1]
            if edges.get(back):
                edges[back] -= 1
            elif edge[0] != edge[1]:
                edges[edge] = edges.get(edge, 0) + 1
    onward = {}
    for (start, end), count in edges.items():
        onward.setdefault(start, []).extend([end] * count)
    for start in onward:
        while onward[start]:
            ring = [start]
            while len(ring) == 1 or ring[-1] != start:
                ring.append(onward[ring[-1]].pop())
            yield ring


def encoded(ring):
    """Returns the ring as numbers, or None for a speck."""
    span = max(max(axis) - min(axis) for axis in zip(*ring))
    if span <= SPECK:
        return None
    numbers, before = [], (0, 0)
    for x, y in ring[:-1]:
        numbers += [x - before[0], y - before[1]]
        before = x, y
    return numbers


def polygons(feature):
    geometry = feature["geometry"]
    return [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]


with open(sys.argv[1], encoding="utf-8") as file:
    features = json.load(file)["features"]
given = [ring for feature in features for polygon in polygons(feature) for ring in polygon]
rings = [encoded(ring) for ring in coasts(given)]
json.dump({"scale": SCALE, "rings": [ring for ring in rings if ring]}, sys.stdout, separators=(",", ":"))
print()
